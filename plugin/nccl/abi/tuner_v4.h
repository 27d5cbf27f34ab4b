// SPDX-License-Identifier: Apache-2.0
// The tuner interface, version 4 (NCCL 2.24 and later): version 3, and whether the buffers are
// registered.
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl::abi {

struct TunerV4 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger, void** context);
  // `costs`: as in version 3.
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipelined, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*destroy)(void* context);
};

static_assert(sizeof(TunerV4) == 32);
static_assert(offsetof(TunerV4, init) == 8);
static_assert(offsetof(TunerV4, get_coll_info) == 16);
static_assert(offsetof(TunerV4, destroy) == 24);

}  // namespace crosstie::nccl::abi
