// SPDX-License-Identifier: Apache-2.0
// A Machine as sightings again, for who makes another Machine of it.
#pragma once
#include <functional>

#include "topology/builder.h"

namespace crosstie {

struct Replay {
  // May change a device before it is seen (its parent is set already), and say no to it.
  std::function<bool(uint32_t index, Device& device)> adjust = [](uint32_t, Device&) {
    return true;
  };
  std::function<bool(const Gap& gap)> keep = [](const Gap&) { return true; };
  std::string prefix{};  // of labels, in gaps too
};

// Shows every device, link, refusal and gap of the Machine and what NCCL takes for true to the
// builder, but the links that a builder makes of parents and NUMA nodes. Returns the builder's
// index of each device; kNoDevice for those that were not to be seen.
std::vector<uint32_t> replay(const Machine& machine, Builder& builder, const Replay& how);

}  // namespace crosstie
