// SPDX-License-Identifier: Apache-2.0
// Logs of measurements of whatever kind, told apart by what they begin with.
#pragma once
#include "cost/outcomes.h"

namespace crosstie {

class Logs {
 public:
  // Fails for what is no log, for one without a run in it, and, as unsupported, where something is
  // told of a log of outcomes.
  Status add(std::string_view text, const std::string& file, const ToldOfLog& told = {});
  // In the order of their logs; those of logs of outcomes last.
  std::vector<MeasuredRun> runs() const;

 private:
  std::vector<MeasuredRun> runs_;
  OutcomeLogs outcomes_;
};

}  // namespace crosstie
