// SPDX-License-Identifier: Apache-2.0
// What the tuner of one communicator answers: made when the communicator is, of facts that all its
// ranks share, and from then on a look-up.
#pragma once
#include <cstdint>

#include "choice/class_rules.h"
#include "choice/nccl_choice.h"

namespace crosstie {

class NcclDecision {
 public:
  NcclDecision(const NcclCommunicator& communicator, const CommunicatorClass& of);

  // On NCCL's launch path: no lock, no allocation. The table may be empty where NCCL shows none.
  Choice choose(Collective collective, uint64_t bytes, const NcclCostTable& table) const;

  const NcclCommunicator& communicator() const { return communicator_; }
  uint64_t digest() const { return digest_; }  // of the facts

 private:
  uint32_t budget_at(uint64_t bytes, const NcclCostTable& table) const;

  NcclCommunicator communicator_;
  ClassPolicy policy_;
  uint64_t digest_;
};

}  // namespace crosstie
