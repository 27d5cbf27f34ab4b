// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include "base/printable.h"

namespace crosstie {
namespace {

std::string_view prefix(Level level) {
  switch (level) {
    case Level::error:
      return "error: ";
    case Level::warn:
      return "warning: ";
    default:
      return "";
  }
}

}  // namespace

Log stderr_log(Level threshold) {
  return Log(threshold, [](Level level, std::string_view text) {
    const std::string line = fmt::format("crosstie: {}{}\n", prefix(level), printable(text));
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  });
}

}  // namespace crosstie
