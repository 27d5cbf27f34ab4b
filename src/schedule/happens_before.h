// SPDX-License-Identifier: Apache-2.0
// What is known to have happened before what, in one execution of all Programs: vector clocks
// over lanes (Lamport; Mattern), and puts, which end not where their lane goes on but where
// somebody sees the flag that they raise. Of the prover.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/site.h"

namespace crosstie {

// When a lane (numbered over all ranks) had run so many steps.
struct Moment {
  uint32_t lane = 0, steps = 0;
};

class Clock {
 public:
  explicit Clock(size_t lanes) : steps_(lanes, 0) {}

  Moment advance(uint32_t lane) { return {lane, ++steps_[lane]}; }
  void join(const Clock& other) {
    for (size_t lane = 0; lane < steps_.size(); lane++)
      steps_[lane] = std::max(steps_[lane], other.steps_[lane]);
  }
  bool has_reached(Moment moment) const { return steps_[moment.lane] >= moment.steps; }

 private:
  std::vector<uint32_t> steps_;
};

// One raise of a flag: what its raiser knew, and who has waited for it.
struct Raise {
  Clock clock;
  std::vector<Moment> seen;
};

// A read or a write of memory.
struct Access {
  Site site;
  uint32_t chunk = 0;
  Moment moment;
  const Raise* end = nullptr;  // of a put: the access lasts until this has been seen

  bool is_before(const Clock& clock) const {
    if (!end) return clock.has_reached(moment);
    return std::any_of(end->seen.begin(), end->seen.end(),
                       [&](Moment seen) { return clock.has_reached(seen); });
  }
};

}  // namespace crosstie
