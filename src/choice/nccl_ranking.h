// SPDX-License-Identifier: Apache-2.0
// In which order a communicator of a class would run NCCL's algorithms and protocols, by collective
// and size: made once, of the cost model, and from then on a look-up.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "choice/class_rules.h"
#include "cost/model.h"
#include "cost/nccl/pair.h"

namespace crosstie {

class NcclRanking {
 public:
  NcclRanking(const CostModel& cost, const CommunicatorClass& of);

  // The first is wanted most. Sizes are taken in eight steps to a power of two, each at its least:
  // powers of two are exact. Allocates nothing.
  std::span<const NcclPair> at(Collective collective, uint64_t bytes) const;
  Seconds predicted(Collective collective, NcclPair pair, uint64_t bytes) const {
    return cost_.predict(collective, pair.algorithm, pair.protocol, bytes).time();
  }

 private:
  // More than NCCL ignores at once, and one.
  static constexpr size_t kKept = 8;
  struct Order {
    std::array<NcclPair, kKept> pairs;
    size_t count = 0;
  };
  Order order(const CommunicatorClass& of, Collective collective, uint64_t bytes) const;

  CostModel cost_;
  std::vector<Order> orders_;  // by collective and step
};

}  // namespace crosstie
