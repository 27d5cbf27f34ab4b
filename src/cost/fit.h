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
  bool on_gpu = false;  // from a kernel's start to its end: without its launch
};
Seconds predicted(const ParameterValues& values, const Observation& of);

// What each of so many times of one system should count for. They are off alike, by what the model
// knows nothing of, so that many count as little more than few.
double weight_in_system(size_t times);

struct Fit {
  Profile profile;                       // has no name and no source yet
  std::array<bool, kParameters> told{};  // what the observations say something about
};

// Least squares of log(predicted / measured), and of log(value / start's) by the rows' factors.
// What the observations are silent about stays as it was at the start, with its interval and
// source. Far-off times count less (Huber's pseudo loss): a published sweep has outliers. Shares
// stay at 1 or below. Takes a second for a thousand observations.
Fit fit(std::span<const Observation> observations, const Profile& start = Profile::expected());

}  // namespace crosstie
