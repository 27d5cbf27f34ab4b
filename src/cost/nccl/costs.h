// SPDX-License-Identifier: Apache-2.0
// Latency and bandwidth of an algorithm and protocol in NCCL's decision model, as far as the size
// does not matter. Private to this folder.
#pragma once
#include "cost/nccl/model.h"

namespace crosstie {

NcclModel::Cost nccl_cost(const NcclRelease& release, const NcclJob& job, Collective collective,
                          Algorithm algorithm, Protocol protocol);

// How many channels NVLS runs on, where it can.
uint32_t nccl_nvls_channels(const NcclRelease& release, const NcclJob& job);

// Of GPUs of that compute capability.
NcclGeneration nccl_generation(uint32_t compute_capability);

}  // namespace crosstie
