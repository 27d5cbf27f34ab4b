// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_decision.h"

#include "base/digest.h"
#include "choice/class_choice.h"

namespace crosstie {
namespace {

bool offers(const NcclCostTable& table, Algorithm algorithm) {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    if (table.has(algorithm, protocol) && table.at(algorithm, protocol) != kNcclIgnored)
      return true;
  return false;
}

}  // namespace

NcclDecision::NcclDecision(const NcclCommunicator& communicator, const CommunicatorClass& of)
    : communicator_(communicator),
      class_(of),
      digest_(Digest().add(communicator.digest()).add(of.digest()).value()) {}

Choice NcclDecision::choose(Collective collective, uint64_t bytes,
                            const NcclCostTable& table) const {
  Choice choice = choose_nccl(question(collective, bytes, table));
  choice.channels = budget_at(bytes, table);
  return choice;
}

uint32_t NcclDecision::budget_at(uint64_t bytes, const NcclCostTable& table) const {
  const bool collnet =
      offers(table, Algorithm::collnet_direct) || offers(table, Algorithm::collnet_chain);
  if (table.size() == 0 || collnet) return 0;
  return channels_to_ask(class_, communicator_.ranks, bytes);
}

}  // namespace crosstie
