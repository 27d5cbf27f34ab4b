// SPDX-License-Identifier: Apache-2.0
// One graph of a node: many tries with fewer and fewer wishes. Private to this folder.
#pragma once
#include "cost/nccl/release.h"
#include "cost/nccl/walk.h"

namespace crosstie {

// With the pattern and numbers of channels that are wanted. Where nothing is found there are no
// channels, or for rings and trees one that is so slow that it is never chosen.
NcclChannels find_nccl_channels(const NcclRelease& release, NcclSystem& system,
                                const NcclChannels& wanted);

}  // namespace crosstie
