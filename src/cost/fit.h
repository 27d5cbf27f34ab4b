// SPDX-License-Identifier: Apache-2.0
// Fits the model's parameters to measured times.
#pragma once
#include <span>

#include "cost/model.h"
#include "cost/profile.h"

namespace crosstie {

// One measured time of a known algorithm.
struct Observation {
  SystemFacts facts;
  CostJob job;
  Collective collective;
  Algorithm algorithm;
  Protocol protocol;
  uint64_t bytes;
  Seconds measured;
  double
      weight;  // what it counts for; 1 is a time that may be off by 20 % (one standard deviation)
};

// Least squares of log(predicted / measured), and of log(value / expected) by the rows' factors, so
// that what the observations are silent about stays as expected. Far-off times count less (Huber's
// pseudo loss): a published sweep has outliers. Shares stay at 1 or below. Takes a second for a
// thousand observations.
// The profile has no name and no source yet.
Profile fit(std::span<const Observation> observations);

}  // namespace crosstie
