// SPDX-License-Identifier: Apache-2.0
// Lines through NCCL's own logger, the only place where a plugin may write.
#pragma once
#include <fmt/format.h>

#include <array>
#include <utility>

#include "nccl/abi/common.h"

namespace crosstie::nccl {

class Logger {
 public:
  Logger(abi::Logger log, abi::LogSubsystem subsystem) : log_(log), subsystem_(subsystem) {}

  template <class... A>
  void warn(fmt::format_string<A...> text, A&&... a) const {
    write(abi::kLogWarn, text, std::forward<A>(a)...);
  }
  template <class... A>
  void info(fmt::format_string<A...> text, A&&... a) const {
    write(abi::kLogInfo, text, std::forward<A>(a)...);
  }

 private:
  // Nothing is allocated: NCCL's launch path writes too.
  template <class... A>
  void write(abi::LogLevel level, fmt::format_string<A...> text, A&&... a) const {
    if (log_ == nullptr) return;
    std::array<char, 512> line;
    const auto end = fmt::format_to_n(line.data(), line.size() - 1, text, std::forward<A>(a)...);
    *end.out = '\0';
    log_(level, subsystem_, "crosstie", 0, "crosstie: %s", line.data());
  }

  abi::Logger log_;
  abi::LogSubsystem subsystem_;
};

}  // namespace crosstie::nccl
