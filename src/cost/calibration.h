// SPDX-License-Identifier: Apache-2.0
// A profile of a system from what was measured on it: which times are of which job and of what ran,
// the fit, and by how much it is off.
#pragma once
#include <memory>

#include "base/finding.h"
#include "cost/fit.h"
#include "cost/measurements.h"

namespace crosstie {

// Of |predicted / measured - 1|.
struct RelativeErrors {
  double median = 0, worst = 0;
};

struct CalibratedRun {
  MeasuredRun run;
  std::string left_out{};  // why; empty: it is fitted to
  SystemFacts facts{};     // of one of NCCL's nodes
  CostJob job{};
  std::vector<Observation> observations{};  // of each size and what ran the median
  size_t not_modelled = 0;                  // sizes of which the model has not what ran,
  NcclPair for_one{};                       // as of this
  RelativeErrors before{}, after{};
};

struct Calibration {
  Fit fit;
  std::vector<CalibratedRun> runs;
  size_t points = 0;  // fitted to
  RelativeErrors before{}, after{};
  std::vector<Finding> findings{};  // of unhealthy runs, and of what was left out
};

// On hosts of that kind. `release`: NCCL's, where a log does not tell it. The profile says where
// its values come from, and has the facts of a host; without points it is no better than the start.
// Fails for a kind without GPUs.
Result<Calibration> calibrate(const std::shared_ptr<const Machine>& kind,
                              std::vector<MeasuredRun> runs, const Profile& start,
                              const NcclVersion& release);

}  // namespace crosstie
