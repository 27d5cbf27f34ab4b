// SPDX-License-Identifier: Apache-2.0
#include "cost/known_systems.h"

#include <algorithm>

#include "cost/system.h"
#include "topology/format/formats.h"
#include "topology/variation.h"

namespace crosstie {
namespace {

Result<std::shared_ptr<const Machine>> read(const KnownMachine& known) {
  auto machine = read_machine_toml(known.toml, "built-in description");
  if (!machine) return pass(machine, known.name);
  return std::make_shared<const Machine>(std::move(*machine));
}

void add(const KnownMachine& known, const NcclRelease& release, uint32_t nodes,
         uint32_t ranks_per_node, std::vector<KnownSystem>& systems) {
  const auto machine = read(known);
  if (!machine) return;
  const uint32_t gpus = (*machine)->count(DeviceKind::gpu);
  if (gpus == 0) return;
  const uint32_t hosts = (ranks_per_node + gpus - 1) / gpus;  // of a node
  if (hosts > (*machine)->hosts_in_domain() || ranks_per_node % hosts != 0) return;
  const auto job = model_job(*machine, nodes * hosts, ranks_per_node / hosts, release);
  // Hosts that share a domain are one node to NCCL, however few are asked for.
  if (!job || job->job.nodes != nodes) return;
  for (KnownSystem& other : systems)
    if (other.facts == job->facts && other.nccl.job() == job->nccl)
      return other.machines += fmt::format(", {}", known.name), void();
  systems.push_back({std::string(known.name), job->facts, NcclModel(release, job->nccl)});
}

}  // namespace

Result<SystemFacts> facts_of_known(std::string_view text) {
  const auto [name, changes] = split_variation(text);
  const auto known = std::ranges::find(known_machines(), name, &KnownMachine::name);
  if (known == known_machines().end()) {
    std::vector<std::string_view> names;
    for (const KnownMachine& one : known_machines()) names.push_back(one.name);
    return fail(Code::missing, "no machine named '{}' is built in; there are {}", name,
                fmt::join(names, ", "));
  }
  const auto machine = read(*known);
  if (!machine) return pass(machine);
  if (changes.empty()) return facts_of(**machine);
  const auto by = parse_variation(changes);
  if (!by) return pass(by);
  const auto varied = vary({.hosts = {{std::string(name), *machine}}}, *by);
  if (!varied) return pass(varied);
  return facts_of(*varied->hosts[0].machine);
}

std::vector<KnownSystem> known_systems(const NcclRelease& release, uint32_t nodes,
                                       uint32_t ranks_per_node) {
  std::vector<KnownSystem> systems;
  for (const KnownMachine& known : known_machines())
    add(known, release, nodes, ranks_per_node, systems);
  return systems;
}

}  // namespace crosstie
