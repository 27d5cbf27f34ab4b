// SPDX-License-Identifier: Apache-2.0
// The systems that are built in (data/machines), as the models take them. Nothing is read from the
// host.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cost/nccl/model.h"
#include "cost/system_facts.h"

namespace crosstie {

// Of a host: "dgx-h100", or varied, "dgx-h100:nics=4x200G". Fails where no machine has that name, or
// it cannot be varied so.
Result<SystemFacts> facts_of_known(std::string_view text);

struct KnownSystem {
  std::string machines;  // "dgx-h100, hgx-h200": those that no model tells apart
  SystemFacts facts;     // of one of NCCL's nodes
  NcclModel nccl;
};

// Those on which a communicator of so many of NCCL's nodes can be, so many ranks on each: the first
// GPUs of each host. NCCL's graphs are searched for each, which takes up to 50 ms a machine.
std::vector<KnownSystem> known_systems(const NcclRelease& release, uint32_t nodes,
                                       uint32_t ranks_per_node);

}  // namespace crosstie
