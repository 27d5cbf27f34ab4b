// SPDX-License-Identifier: Apache-2.0
// What NCCL's decision model takes: the graphs that NCCL found for a communicator, reduced across
// its ranks, and facts of the communicator.
#pragma once
#include "base/units.h"
#include "topology/path_class.h"

namespace crosstie {

// How channels run through a node. NCCL's numbers.
enum class NcclPattern : uint8_t {
  none = 0,
  balanced_tree = 1,  // parent and child on the two GPUs nearest to the NIC
  split_tree = 2,     // parent on the first, children on the second
  tree = 3,           // all on one GPU
  ring = 4,
  nvls = 5,
  collnet_direct = 6,
};

// As searched: channels are counted before they are doubled, rates are of one channel.
struct NcclGraph {
  NcclPattern pattern = NcclPattern::none;
  uint32_t channels = 0;
  Bandwidth intra{}, inter{};
  PathClass type_intra = PathClass::loc, type_inter = PathClass::loc;
  bool same_channels = false;  // every channel is the same
  int cross_nic = 0;           // 1: channels may leave and enter by NICs of different rails
  Seconds latency_inter{};     // of the slowest NIC
  bool operator==(const NcclGraph&) const = default;
};

struct NcclGraphs {
  NcclGraph ring, tree, collnet_chain, nvls, collnet_direct;
  bool operator==(const NcclGraphs&) const = default;
};

// Of all hosts of a communicator together.
enum class NcclCpu : uint8_t {
  intel,
  amd,
  other_x86,
  x86_of_several_vendors,
  arm,
  power,
  several,  // architectures
};

// A node is NCCL's: a host, or all hosts of an NVLink domain together.
struct NcclJob {
  uint32_t ranks = 1, nodes = 1;
  uint32_t most_ranks_per_node = 1, fewest_ranks_per_node = 1;
  uint32_t min_compute_capability = 0, max_compute_capability = 0;  // 10 * major + minor
  NcclCpu cpu = NcclCpu::intel;
  bool nvls = false;             // the driver can multicast over NVLink
  bool nvswitch = false;         // there is one
  bool collnet = false;          // NCCL_COLLNET_ENABLE, and a network that reduces (SHARP)
  bool collnet_gathers = false;  // the network also gathers and scatters
  uint32_t collnet_heads = 0;    // ranks of a node that have a NIC of their own for it
  uint32_t channels = 0;         // of the communicator in the end
  Bandwidth slowest_port{};      // of the NICs in use
  NcclGraphs graphs;
  bool operator==(const NcclJob&) const = default;
};

}  // namespace crosstie
