// SPDX-License-Identifier: Apache-2.0
// NCCL's search for graphs (src/graph/search.cc, connect.cc): how many channels it runs through a
// node, how fast, over what. With it NCCL's decisions follow from a Topology's Machines.
#pragma once
#include <span>

#include "cost/nccl/graph.h"
#include "cost/nccl/release.h"
#include "topology/machine.h"

namespace crosstie {

// Nodes that are alike: hosts, or NVLink domains fused to one Machine (topology/domain.h).
struct NcclNodes {
  const Machine* machine = nullptr;
  uint32_t count = 1;
  uint32_t gpus = 0;  // of each node in use, the first of it; 0: all
};

// What a network that reduces (SHARP) can do.
struct NcclNetwork {
  bool reduces = false, gathers = false;
};

// What each of the nodes finds by itself, one of several or alone; of nodes whose GPUs the network
// joins faster, so that NCCL takes one for several, the first part.
Result<NcclGraphs> find_nccl_graphs(const NcclRelease& release, const NcclNodes& nodes,
                                    bool several_nodes, NcclNetwork network = {});

// All that NCCL's decisions read: what all nodes can do. One rank per GPU; no variable of NCCL's is
// set.
Result<NcclJob> find_nccl_job(const NcclRelease& release, std::span<const NcclNodes> nodes,
                              NcclNetwork network = {});

}  // namespace crosstie
