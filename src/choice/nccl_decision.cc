// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_decision.h"

#include <algorithm>

#include "base/digest.h"

namespace crosstie {
namespace {

// NCCL begins with all its channels, and drops one while a channel would get fewer bytes than its
// threads times a threshold (2.28.9, src/enqueue.cc). These are the most of both: 640 threads
// (device.h), 64 for Simple (comm.h), 8 times the ranks for LL on a ring (graph/tuning.cc).
uint64_t most_bytes_of_a_channel(uint32_t ranks) {
  return 640 * std::max<uint64_t>(64, uint64_t{8} * ranks);
}

bool offers(const NcclCostTable& table, Algorithm algorithm) {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    if (table.has(algorithm, protocol) && table.at(algorithm, protocol) != kNcclIgnored)
      return true;
  return false;
}

}  // namespace

NcclDecision::NcclDecision(const NcclCommunicator& communicator, const CommunicatorClass& of)
    : communicator_(communicator),
      policy_(of.policy),
      digest_(Digest().add(communicator.digest()).add(of.digest()).value()) {}

Choice NcclDecision::choose(Collective collective, uint64_t bytes,
                            const NcclCostTable& table) const {
  Choice choice = choose_nccl(question(collective, bytes, table));
  choice.channels = budget_at(bytes, table);
  return choice;
}

// What a tuner writes replaces NCCL's own number up to 2.30: it is asked for only where NCCL would
// take no fewer. For CollNet nothing bounds it from above, so it is left alone there.
uint32_t NcclDecision::budget_at(uint64_t bytes, const NcclCostTable& table) const {
  const uint32_t budget = policy_.channels;
  if (budget == 0 || table.size() == 0) return 0;
  if (bytes / budget < most_bytes_of_a_channel(communicator_.ranks)) return 0;
  const bool collnet =
      offers(table, Algorithm::collnet_direct) || offers(table, Algorithm::collnet_chain);
  return collnet ? 0 : budget;
}

}  // namespace crosstie
