// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/class_choice.h"

#include <algorithm>

namespace crosstie {
namespace {

// NCCL drops a channel while it would get fewer bytes than its threads times a threshold (2.28.9,
// src/enqueue.cc). These are the most of both: 640 threads (device.h), 64 for Simple (comm.h), 8
// times the ranks for LL on a ring (graph/tuning.cc).
uint64_t most_bytes_of_a_channel(uint32_t ranks) {
  return 640 * std::max<uint64_t>(64, uint64_t{8} * ranks);
}

}  // namespace

std::string_view why_not(const CommunicatorClass& of, Algorithm algorithm) {
  const bool multicast = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  if (!multicast || of.nvls) return "";
  return of.policy.nvls_from_ranks == 0 ? "no NVLS for this class"
                                        : "too few ranks a node for NVLS in this class";
}

std::optional<size_t> choose_for(const CommunicatorClass& of, std::span<const Candidate> candidates,
                                 std::optional<size_t> nccl) {
  const auto allowed = [&](size_t i) { return why_not(of, candidates[i].algorithm).empty(); };
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); i++)
    if (allowed(i) && (!best || candidates[i].predicted < candidates[*best].predicted)) best = i;
  if (!best || !nccl || !allowed(*nccl)) return best;
  const Seconds as_good = candidates[*best].predicted * (1 + kNoBetter);
  return candidates[*nccl].predicted <= as_good ? nccl : best;
}

uint32_t channels_to_ask(const CommunicatorClass& of, uint32_t ranks, uint64_t bytes) {
  const uint32_t budget = of.policy.channels;
  return budget > 0 && bytes / budget >= most_bytes_of_a_channel(ranks) ? budget : 0;
}

}  // namespace crosstie
