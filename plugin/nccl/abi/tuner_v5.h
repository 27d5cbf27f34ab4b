// SPDX-License-Identifier: Apache-2.0
// The tuner interface, version 5 (NCCL 2.28 and later): names, order and types of members.
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl::abi {

// Of the communicator; a node of NCCL's is an NVLink domain.
struct NvlDomainInfoV5 {
  int domains, fewest_ranks, most_ranks;
};

// NCCL's model, microseconds and GB/s: this communicator's copy, with the defaults in it.
// Indices: algorithm (tree first), protocol, link (NVLink, PCI, network), compute capability
// (from Volta on), scale (1, 2, more nodes).
template <int kCapabilities>
struct TunerConstants {
  double base_latency[7][3];
  double step_latency[3][7][3];
  double ll_most_bandwidth[kCapabilities][3];
  double ring_ll128_channel_bandwidth[kCapabilities][3];
  double tree_ll128_channel_bandwidth[kCapabilities][3];
  double tree_channel_bandwidth[kCapabilities][3];
  double nvls_tree_channel_bandwidth[kCapabilities][3];
};
using TunerConstantsV5 = TunerConstants<4>;  // to Blackwell

struct TunerV5 {
  const char* name;
  Result (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger,
                 NvlDomainInfoV5*, TunerConstantsV5*);
  // `costs`: as in version 3.
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipelined, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*finalize)(void* context);
};

// Taken with a compiler from NCCL 2.28.9's headers, x86-64.
static_assert(sizeof(NvlDomainInfoV5) == 12);
static_assert(sizeof(TunerConstantsV5) == 1152);
static_assert(offsetof(TunerConstantsV5, step_latency) == 168);
static_assert(offsetof(TunerConstantsV5, ll_most_bandwidth) == 672);
static_assert(offsetof(TunerConstantsV5, ring_ll128_channel_bandwidth) == 768);
static_assert(offsetof(TunerConstantsV5, tree_ll128_channel_bandwidth) == 864);
static_assert(offsetof(TunerConstantsV5, tree_channel_bandwidth) == 960);
static_assert(offsetof(TunerConstantsV5, nvls_tree_channel_bandwidth) == 1056);
static_assert(sizeof(TunerV5) == 32);
static_assert(offsetof(TunerV5, init) == 8);
static_assert(offsetof(TunerV5, get_coll_info) == 16);
static_assert(offsetof(TunerV5, finalize) == 24);

}  // namespace crosstie::nccl::abi
