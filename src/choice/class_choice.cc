// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/class_choice.h"

#include <algorithm>

#include "cost/nccl/pair.h"

namespace crosstie {
namespace {

// NCCL drops a channel while it would get fewer bytes than its threads times a threshold (2.28.9,
// src/enqueue.cc). These are the most of both: 640 threads (device.h), 64 for Simple (comm.h), 8
// times the ranks for LL on a ring (graph/tuning.cc).
uint64_t most_bytes_of_a_channel(uint32_t ranks) {
  return 640 * std::max<uint64_t>(64, uint64_t{8} * ranks);
}

Seconds of_bytes(const Prediction& prediction) {
  Seconds sum{};
  for (const Term& term : prediction.terms())
    if (term.name.starts_with("bytes")) sum += term.time;
  return sum;
}

// Switches that reduce do so in place of the GPUs' multiprocessors.
bool reduces_in_switches(Algorithm algorithm) {
  return is_nvls(algorithm) || is_collnet(algorithm);
}

// By how much it misses the aim. Latency: what waits, whatever the links carry. Bandwidth: how long
// the links are taken from others. Compute: how long multiprocessors are.
Seconds missed(Aim aim, Algorithm algorithm, const Prediction& prediction) {
  if (aim == Aim::latency) return prediction.time() - of_bytes(prediction);
  if (aim == Aim::bandwidth) return of_bytes(prediction);
  if (aim == Aim::compute && !reduces_in_switches(algorithm)) return prediction.time();
  return Seconds(0);
}

}  // namespace

std::string_view why_not(const CommunicatorClass& of, Algorithm algorithm) {
  if (!is_nvls(algorithm) || of.nvls) return "";
  return of.policy.nvls_from_ranks == 0 ? "no NVLS for this class"
                                        : "too few ranks a node for NVLS in this class";
}

Preference preference(const ClassPolicy& policy, Algorithm algorithm, const Prediction& prediction,
                      Seconds least) {
  const Seconds time = prediction.time();
  if (time > least * (1 + policy.worth)) return {true, Seconds(0), time};
  return {false, missed(policy.aim, algorithm, prediction), time};
}

uint32_t channels_to_ask(const CommunicatorClass& of, uint32_t ranks, uint64_t bytes) {
  const uint32_t budget = of.policy.channels;
  return budget > 0 && bytes / budget >= most_bytes_of_a_channel(ranks) ? budget : 0;
}

}  // namespace crosstie
