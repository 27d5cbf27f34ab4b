// SPDX-License-Identifier: Apache-2.0
#include "cost/bound.h"

#include <algorithm>

namespace crosstie {
namespace {

// Of a NIC's port, wire to wire (UCX, src/uct/ib/base/ib_iface.c: EDR and later); of a store over
// NVLink to a flag and its load (NCCL's least step).
constexpr Seconds kNetworkStep = microseconds(0.6), kInsideStep = microseconds(0.6);

// Times through, in M bytes, of which the parts' leaving capacity is shared.
double through(Collective collective, double parts, bool in_network) {
  if (collective != Collective::all_reduce) return parts - 1;
  return in_network ? parts : 2 * (parts - 1);
}

uint32_t steps_to_tell(uint32_t parties, uint32_t at_once) {
  uint32_t steps = 0;
  for (uint64_t know = 1; know < parties; know *= at_once + 1) steps++;
  return steps;
}

Seconds latency(const SystemFacts& facts, const CostJob& job) {
  const Seconds inside = job.ranks > job.nodes ? kInsideStep : Seconds(0);
  return inside + steps_to_tell(job.nodes, std::max(1u, facts.nics)) * kNetworkStep;
}

}  // namespace

std::vector<Cut> cuts_of(const SystemFacts& facts, const CostJob& job) {
  const double gpus = static_cast<double>(job.ranks) / job.nodes;
  const double network = job.nodes > 1 ? std::min<double>(facts.nics, std::max(1.0, gpus)) *
                                             facts.nic_wire.bytes_per_second
                                       : 0;
  const double inside = gpus > 1 ? facts.gpu_wire.bytes_per_second : 0;
  std::vector<Cut> cuts{{"GPUs", job.ranks, 1, {job.ranks * inside + job.nodes * network}}};
  if (job.nodes > 1)
    cuts.push_back({"nodes", job.nodes, static_cast<uint32_t>(gpus), {job.nodes * network}});
  return cuts;
}

Bound bound_of(Collective collective, const SystemFacts& facts, const CostJob& job, uint64_t bytes,
               bool in_network) {
  Bound best{latency(facts, job), "steps in a row"};
  for (const Cut& cut : cuts_of(facts, job)) {
    const double times = through(collective, cut.parts, in_network && cut.ranks_in_part == 1);
    const Seconds time(times * static_cast<double>(bytes) / cut.leaving.bytes_per_second);
    if (time > best.time)
      best = {time, cut.ranks_in_part == 1 ? "bytes between GPUs" : "bytes between nodes"};
  }
  return best;
}

}  // namespace crosstie
