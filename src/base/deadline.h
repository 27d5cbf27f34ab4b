// SPDX-License-Identifier: Apache-2.0
// Nothing waits without a bound.
#pragma once
#include <algorithm>
#include <chrono>

namespace crosstie {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  explicit Deadline(Clock::duration in) : at_(Clock::now() + in) {}
  explicit Deadline(Clock::time_point at) : at_(at) {}

  bool expired() const { return Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  // Milliseconds left for poll(2), rounded up so that a wait never ends before its deadline.
  int poll_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1 << 30));
  }
  Deadline sooner(Deadline other) const { return Deadline(std::min(at_, other.at_)); }

 private:
  Clock::time_point at_;
};

}  // namespace crosstie
