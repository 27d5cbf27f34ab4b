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

  uint64_t digest() const { return digest_; }  // of the facts
  // Of these and of the question, to see whether ranks decide from the same. For the log only.
  uint64_t digest_of(Collective collective, uint64_t bytes, const NcclCostTable& table) const {
    return question(collective, bytes, table).digest();
  }

 private:
  NcclQuestion question(Collective collective, uint64_t bytes, const NcclCostTable& table) const {
    return {communicator_, digest_, collective, bytes, table};
  }
  uint32_t budget_at(uint64_t bytes, const NcclCostTable& table) const;

  NcclCommunicator communicator_;
  CommunicatorClass class_;
  uint64_t digest_;
};

}  // namespace crosstie
