// SPDX-License-Identifier: Apache-2.0
// The tuner interface, versions 6 (NCCL 2.30) and 7 (2.32): version 5, and a say on chunks. In
// version 7 the constants know one compute capability more.
#pragma once
#include "nccl/abi/tuner_v5.h"

namespace crosstie::nccl::abi {

using TunerConstantsV7 = TunerConstants<5>;  // to Rubin

template <class Constants>
struct TunerWithChunks {
  const char* name;
  Result (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger,
                 NvlDomainInfoV5*, Constants*);
  // `costs`: as in version 3.
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipelined, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*finalize)(void* context);
  // Null: NCCL's chunk size stands.
  Result (*get_chunk_size)(void* context, int function, size_t bytes, int algorithm, int protocol,
                           int channels, size_t* chunk);
};
using TunerV6 = TunerWithChunks<TunerConstantsV5>;
using TunerV7 = TunerWithChunks<TunerConstantsV7>;

static_assert(sizeof(TunerConstantsV7) == 1272);
static_assert(offsetof(TunerConstantsV7, step_latency) == 168);
static_assert(offsetof(TunerConstantsV7, ll_most_bandwidth) == 672);
static_assert(offsetof(TunerConstantsV7, ring_ll128_channel_bandwidth) == 792);
static_assert(offsetof(TunerConstantsV7, nvls_tree_channel_bandwidth) == 1152);
static_assert(sizeof(TunerV6) == 40 && sizeof(TunerV7) == 40);
static_assert(offsetof(TunerV6, init) == 8);
static_assert(offsetof(TunerV6, get_coll_info) == 16);
static_assert(offsetof(TunerV6, finalize) == 24);
static_assert(offsetof(TunerV6, get_chunk_size) == 32);

}  // namespace crosstie::nccl::abi
