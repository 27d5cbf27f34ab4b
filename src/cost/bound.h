// SPDX-License-Identifier: Apache-2.0
// What no algorithm can beat on given links: the partition bound for bytes, and steps in a row for
// latency. Beside a prediction it says how much there is to gain, as quality = bound / time.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/words.h"
#include "cost/model.h"

namespace crosstie {

// A partition of the ranks: all links from one part to another, together, carry so much.
struct Cut {
  std::string_view name;  // of the parts: "GPUs", "nodes"
  uint32_t parts = 0;
  uint32_t ranks_in_part = 0;
  Bandwidth leaving{};  // of all parts together, one way
};

// Singletons and nodes, at wire rates: on two levels no other partition binds (algorithms.md,
// section 1; ForestColl gives the same for AllGather and ReduceScatter).
std::vector<Cut> cuts_of(const SystemFacts& facts, const CostJob& job);

struct Bound {
  Seconds time{};
  std::string_view by;  // "bytes between GPUs", "bytes between nodes", "steps in a row"
};

// in_network: whether switches may add up, as NVLS has it.
//
// Of k parts with C leaving all, for M bytes: AllReduce at endpoints 2(k-1)M/C, as each element is
// told once to k-1 parts and gathered from k-1 (for a gossip in one direction each); with switches
// that add up kM/C, as each part must send M and receive M; AllGather and ReduceScatter (k-1)M/C;
// Broadcast and Reduce (k-1)M/C. Steps: each of n nodes with q NICs tells q others at once, so that
// all know after ceil(log_{q+1} n) steps, of at least a NIC's latency.
Bound bound_of(Collective collective, const SystemFacts& facts, const CostJob& job, uint64_t bytes,
               bool in_network);

}  // namespace crosstie
