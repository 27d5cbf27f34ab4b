// SPDX-License-Identifier: Apache-2.0
// The tuner interface, version 3 (NCCL 2.22 and later).
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl::abi {

struct TunerV3 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger, void** context);
  // `costs` is in truth the address of a contiguous float[algorithms][protocols].
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipelined, float** costs,
                          int algorithms, int protocols, int* channels);
  Result (*destroy)(void* context);
};

static_assert(sizeof(TunerV3) == 32);
static_assert(offsetof(TunerV3, init) == 8);
static_assert(offsetof(TunerV3, get_coll_info) == 16);
static_assert(offsetof(TunerV3, destroy) == 24);

}  // namespace crosstie::nccl::abi
