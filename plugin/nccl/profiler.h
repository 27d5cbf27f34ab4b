// SPDX-License-Identifier: Apache-2.0
// The profiler of one rank's communicator, whatever version of NCCL's interface asked for it. It is
// there to hear the communicator's name for the tuner; events it wants only where outcomes are
// logged.
#pragma once
#include <optional>

#include "base/options.h"
#include "nccl/logger.h"
#include "nccl/options.h"
#include "nccl/outcome_log.h"
#include "nccl/process.h"

namespace crosstie::nccl {

class Profiler {
 public:
  Profiler(const LoggedRank& rank, const Environment& environment, Logger log);

  // What NCCL is to tell: nothing, which costs nothing, or what the log needs.
  int wanted_events() const;
  OutcomeLog* outcomes() { return outcomes_ ? &*outcomes_ : nullptr; }

 private:
  Share share_;
  std::optional<OutcomeLog> outcomes_;
};

}  // namespace crosstie::nccl
