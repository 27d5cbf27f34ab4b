// SPDX-License-Identifier: Apache-2.0
// NCCL (libnccl.so.2) as a table of functions.
#pragma once
#include "driver/library.h"

namespace crosstie {

struct Nccl {
  int (*get_version)(int* version) = nullptr;  // ncclResult_t; 0 is success
};

Result<Driver<Nccl>> open_nccl();

}  // namespace crosstie
