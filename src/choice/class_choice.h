// SPDX-License-Identifier: Apache-2.0
// What the class of a communicator makes of candidates with predicted times: the one rule for the
// tuner, which decides, and for whoever explains what it decides. Pure, allocates nothing.
#pragma once
#include <optional>
#include <span>

#include "choice/choice.h"
#include "choice/class_rules.h"

namespace crosstie {

// Where our model sees less than a hundredth between NCCL's pick and the best, NCCL's stands. Much
// smaller than the model's error: what candidates share they are wrong in alike. On the published
// sweeps a margin of a sixteenth more than doubles the mean regret.
inline constexpr double kNoBetter = 1.0 / 100;

// Why the class does not let the algorithm be chosen, or empty if it does; static text.
std::string_view why_not(const CommunicatorClass& of, Algorithm algorithm);

// The index of the one to run of those that can: the fastest that the class allows; but NCCL's own
// pick, `nccl`, where that is allowed too and nothing is faster by more than kNoBetter. Of equals
// the first. None where the class allows none.
std::optional<size_t> choose_for(const CommunicatorClass& of, std::span<const Candidate> candidates,
                                 std::optional<size_t> nccl);

// Channels to ask NCCL for; 0: its own number. What is asked for replaces that number up to NCCL
// 2.30, also by a larger one: so the class's budget is asked for only where NCCL would begin with
// all its channels and drop none. For CollNet nothing bounds it from above: do not ask there.
uint32_t channels_to_ask(const CommunicatorClass& of, uint32_t ranks, uint64_t bytes);

}  // namespace crosstie
