// SPDX-License-Identifier: Apache-2.0
// What the class of a communicator makes of candidates with predicted times: the one rule for the
// tuner, which decides, and for whoever explains what it decides. Pure, allocates nothing.
#pragma once
#include <compare>

#include "choice/class_rules.h"
#include "cost/prediction.h"

namespace crosstie {

// Why the class does not let the algorithm be chosen, or empty if it does; static text.
std::string_view why_not(const CommunicatorClass& of, Algorithm algorithm);

// The least is wanted most. Those that are within the policy's worth of the least time come first,
// ordered by what the class aims at, then by time; then the others, by time.
struct Preference {
  bool slow = false;
  Seconds missed{}, time{};
  auto operator<=>(const Preference&) const = default;
};
Preference preference(const ClassPolicy& policy, Algorithm algorithm, const Prediction& prediction,
                      Seconds least);

// Channels to ask NCCL for; 0: its own number. What is asked for replaces that number up to NCCL
// 2.30, also by a larger one: so the class's budget is asked for only where NCCL would begin with
// all its channels and drop none. For CollNet nothing bounds it from above: do not ask there.
uint32_t channels_to_ask(const CommunicatorClass& of, uint32_t ranks, uint64_t bytes);

}  // namespace crosstie
