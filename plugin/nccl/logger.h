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

  // NCCL_DEBUG_SUBSYS filters warnings too: NCCL gives its own to all subsystems.
  template <class... A>
  void warn(fmt::format_string<A...> text, A&&... a) const {
    write(abi::kLogWarn, ~0ul, text, std::forward<A>(a)...);
  }
  // Once for a communicator: seen where NCCL_DEBUG_SUBSYS is not set.
  template <class... A>
  void introduce(fmt::format_string<A...> text, A&&... a) const {
    write(abi::kLogInfo, abi::kLogInit | subsystem_, text, std::forward<A>(a)...);
  }
  template <class... A>
  void info(fmt::format_string<A...> text, A&&... a) const {
    write(abi::kLogInfo, subsystem_, text, std::forward<A>(a)...);
  }

 private:
  // Nothing is allocated: NCCL's launch path writes too.
  template <class... A>
  void write(abi::LogLevel level, unsigned long subsystems, fmt::format_string<A...> text,
             A&&... a) const {
    if (log_ == nullptr) return;
    std::array<char, 512> line;
    const auto end = fmt::format_to_n(line.data(), line.size() - 1, text, std::forward<A>(a)...);
    *end.out = '\0';
    log_(level, subsystems, "crosstie", 0, "crosstie: %s", line.data());
  }

  abi::Logger log_;
  abi::LogSubsystem subsystem_;
};

}  // namespace crosstie::nccl
