// SPDX-License-Identifier: Apache-2.0
// What the tuner of one communicator answers: made when the communicator is, of facts that all its
// ranks share, and from then on a look-up.
#pragma once
#include <cstdint>

#include "choice/nccl_choice.h"

namespace crosstie {

class NcclDecision {
 public:
  explicit NcclDecision(const NcclCommunicator& communicator)
      : communicator_(communicator), digest_(communicator.digest()) {}

  // On NCCL's launch path: no lock, no allocation. The table may be empty where NCCL shows none.
  Choice choose(Collective collective, uint64_t bytes, const NcclCostTable& table) const {
    return choose_nccl({communicator_, digest_, collective, bytes, table});
  }

  const NcclCommunicator& communicator() const { return communicator_; }
  uint64_t digest() const { return digest_; }  // of the facts

 private:
  NcclCommunicator communicator_;
  uint64_t digest_;
};

}  // namespace crosstie
