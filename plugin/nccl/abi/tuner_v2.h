// SPDX-License-Identifier: Apache-2.0
// The tuner interface, version 2 (NCCL 2.21; read by 2.21 to 2.32): no cost table. What is chosen
// is handed back as numbers; both or none, as they arrive (-1).
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl::abi {

struct TunerV2 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger, void** context);
  Result (*get_coll_info)(void* context, int function, size_t bytes, int collnet, int nvls,
                          int pipelined, int* algorithm, int* protocol, int* channels);
  Result (*destroy)(void* context);
};

static_assert(sizeof(TunerV2) == 32);
static_assert(offsetof(TunerV2, init) == 8);
static_assert(offsetof(TunerV2, get_coll_info) == 16);
static_assert(offsetof(TunerV2, destroy) == 24);

}  // namespace crosstie::nccl::abi
