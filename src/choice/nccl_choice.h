// SPDX-License-Identifier: Apache-2.0
// Which algorithm and protocol NCCL should run, where NCCL's own estimates cannot tell.
//
// NCCL's model gives each candidate a time; the least wins, be it by 0.1 %. Its times are not
// that good: in the one published sweep that prints them (4 nodes of 8 GPUs, AllReduce, 64 B to
// 1 GiB) the median error is 39 %, and in 2429 published pairs of in-place and out-of-place
// times of several nodes, same run and size, 7 % (upper quartile) lie between two measurements
// of the very same thing. So candidates within 1/16 of the least time count as tied, and a tie
// goes to the one that has less to lose:
//
//  1. NVLS_TREE yields to the cheapest tied Ring or Tree. On 3 nodes and more it is reported to
//     collapse: 3.8 times slower than Ring at 8 GiB on 4, 8 and 16 nodes (NVIDIA/nccl issue
//     2035), under repeated runs on 64 nodes (1752); on 4 nodes no gain at all (1221).
//  2. Where waiting makes at least half of the time of NCCL's pick, fewer steps in a row win: each
//     step waits for the slowest of its peers, and NCCL's model adds mean latencies only.
//
// What the published sweeps say of it: nothing against it, and no measured gain either. They hold
// six groups of arms on 3 nodes and more (the GB300 trays are one NVLink domain, one node to
// NCCL); in none does NCCL's model, as far as its table can be known, put two arms that near.
// Without its latency condition rule 2 would do harm: in the sweep above, at 4 MiB, NCCL takes
// Ring/Simple with Tree/Simple 8 % behind, and Tree as extrapolated from 1 and 2 MiB is 29 %
// slower. Large messages are therefore left to NCCL, also where it is known to be wrong by more
// than the margin (Ring for Tree on 3 NVLink domains, issue 1801): that needs a model of our own,
// not a tie-break.
//
// Only facts that all ranks share are read. One of them is shared no better than NCCL shares
// it: on nodes with CPUs of different vendors the ranks' tables differ (issues 1136, 1184), and
// then NCCL's own choice differs too. The digest shows it.
#pragma once
#include <array>
#include <cstdint>

#include "choice/choice.h"
#include "choice/nccl_table.h"

namespace crosstie {

// Of NCCL's constants those that rule 2 reads, by protocol in NCCL's order.
struct NcclLatencies {
  struct Of {
    std::array<Seconds, 3> base{}, nvlink_step{}, network_step{};
  };
  Of tree, ring;
};

// What all ranks of a communicator know of it. A node is NCCL's node, which is a whole NVLink
// domain where domains span hosts. The ranks per domain and the latencies are zeros where NCCL
// does not tell them: before tuner interface 5.
struct NcclCommunicator {
  uint32_t ranks = 0, nodes = 0;
  uint32_t fewest_ranks_per_domain = 0, most_ranks_per_domain = 0;
  NcclLatencies latencies;

  uint64_t digest() const;
};

struct NcclQuestion {
  const NcclCommunicator& communicator;
  uint64_t communicator_digest;  // of the above; computed once, not for each call
  Collective collective;
  uint64_t bytes;  // as NCCL counts them: the whole buffer
  NcclCostTable table;

  // Of all that a choice reads. For the log only: it takes longer than the choice.
  uint64_t digest() const;
};

// Abstains where NCCL's own pick stands. Otherwise the first candidate is to run, and the second is
// NCCL's.
Choice choose_nccl(const NcclQuestion& question);

}  // namespace crosstie
