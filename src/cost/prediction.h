// SPDX-License-Identifier: Apache-2.0
// A time with the terms it is made of. Fixed size: nothing is allocated.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/units.h"

namespace crosstie {

struct Term {
  std::string_view name, source;  // static text
  Seconds time{};
};

class Prediction {
 public:
  static constexpr size_t kMost = 8;

  // Nothing where the time is 0. What overlaps is below 0.
  void add(std::string_view name, Seconds time, std::string_view source) {
    if (time != Seconds(0)) terms_[count_++] = {name, source, time};
  }
  std::span<const Term> terms() const { return {terms_.data(), count_}; }
  Seconds time() const {
    Seconds sum{};
    for (const Term& term : terms()) sum += term.time;
    return sum;
  }
  // From a kernel's start to its end.
  Seconds time_on_gpu() const {
    Seconds sum = time();
    for (const Term& term : terms())
      if (term.name == kLaunch) sum -= term.time;
    return sum;
  }
  // Of the term for what comes before the kernel and after it.
  static constexpr std::string_view kLaunch = "launch";

 private:
  std::array<Term, kMost> terms_;
  size_t count_ = 0;
};

}  // namespace crosstie
