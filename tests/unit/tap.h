// SPDX-License-Identifier: Apache-2.0
// TAP for programs with a plain main: those that fork real processes, and those that run under
// ThreadSanitizer, where Criterion's runner does not.
#pragma once
#include <fmt/format.h>

#include <string>

namespace crosstie::test {

class Tap {
 public:
  // One line a test; `why` is shown when it fails.
  void check(bool passed, std::string_view name, std::string_view why = "") {
    count_++;
    failed_ += !passed;
    fmt::print("{} {} - {}\n", passed ? "ok" : "not ok", count_, name);
    if (!passed && !why.empty()) fmt::print("# {}\n", why);
    std::fflush(stdout);
  }
  void skip(std::string_view name, std::string_view why) {
    fmt::print("ok {} - {} # SKIP {}\n", ++count_, name, why);
  }
  // Prints the plan; the program's exit code.
  int finish() const {
    fmt::print("1..{}\n", count_);
    return failed_ > 0;
  }

 private:
  int count_ = 0, failed_ = 0;
};

}  // namespace crosstie::test
