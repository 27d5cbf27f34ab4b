// SPDX-License-Identifier: Apache-2.0
// Topology files that were written of machines that we know.
#pragma once
#include "topology/format/formats.h"

namespace crosstie {

// The host of a file; between which GPUs the driver refuses peer access, no file of NCCL's tells,
// and so that is as of the known machine, if any is named. GPUs have the same labels in both.
inline Result<Machine> read_as_known(const char* file, const char* known) {
  const auto topology = read_topology_file(file);
  if (!topology || known == nullptr) {
    if (!topology) return pass(topology);
    return *topology->hosts[0].machine;
  }
  const auto named = read_synthetic(known);
  if (!named) return pass(named);
  Machine::Parts parts = topology->hosts[0].machine->parts();
  const Machine& like = *named->hosts[0].machine;
  const auto place = [&](uint32_t device) {
    uint32_t i = 0;
    while (parts.devices[i].label != like.devices()[device].label) i++;
    return i;
  };
  for (const Refusal& refusal : like.refusals())
    parts.refusals.push_back({place(refusal.a), place(refusal.b), refusal.why});
  return Machine(std::move(parts));
}

}  // namespace crosstie
