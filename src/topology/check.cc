// SPDX-License-Identifier: Apache-2.0
#include "topology/check.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "base/text.h"
#include "topology/check_machine.h"
#include "topology/diff.h"

namespace crosstie {
namespace {

constexpr size_t kMostShown = 3;  // differences of an odd host

// Hosts of one machine.
struct Alike {
  const Machine* machine;
  std::vector<const Host*> hosts;

  std::string text() const {
    return some_of(hosts | std::views::transform([](const Host* host) { return host->name; }), 1);
  }
};

std::vector<Alike> group(const Topology& topology) {
  std::vector<Alike> groups;
  for (const Host& host : topology.hosts) {
    auto group = std::ranges::find(groups, host.machine.get(), &Alike::machine);
    if (group == groups.end()) group = groups.insert(group, {host.machine.get(), {}});
    group->hosts.push_back(&host);
  }
  return groups;
}

// The GPUs and NICs of a NUMA node.
std::vector<uint32_t> beneath(const Suspect& suspect, uint32_t node) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < suspect.machine.devices().size(); i++) {
    const Device& d = suspect.device(i);
    if ((d.kind != DeviceKind::gpu && d.kind != DeviceKind::nic) || suspect.machine.is_part(d))
      continue;
    uint32_t above = d.parent;
    while (above != kNoDevice && above != node) above = suspect.device(above).parent;
    if (above == node) out.push_back(i);
  }
  return out;
}

constexpr const char* kGiveNuma =
    "give numa of its [[device]] in an overlay (topo make-xml --overlay)";

// Where it is the only node nothing is farther than it seems.
void check_numa_node(Suspect& suspect, const Gap& gap, uint32_t node) {
  const Device& d = suspect.device(node);
  const bool has_others = std::ranges::any_of(suspect.machine.devices(), [&](const Device& other) {
    return other.kind == DeviceKind::numa && other.identity.number && other.host == d.host &&
           other.identity.number != d.identity.number;
  });
  const auto of = beneath(suspect, node);
  suspect.find(has_others && !of.empty() ? Severity::warning : Severity::note, "numa-unknown",
               of.empty() ? std::vector{node} : of, "its NUMA node is not known",
               fmt::format("{}: {}", d.label, gap.text()), kGiveNuma);
}

void check_numa(Suspect& suspect, const Gap& gap, uint32_t i) {
  if (suspect.device(i).kind == DeviceKind::numa) return check_numa_node(suspect, gap, i);
  suspect.find(Severity::warning, "numa-unknown", {i}, gap.missing,
               "assumed: " + (gap.assumed.empty() ? "nothing" : gap.assumed), kGiveNuma);
}

// A gap about a device that is a finding as it stands.
struct Doubt {
  GapAbout about;
  const char *check, *what, *advice;
};
constexpr std::array<Doubt, 3> kDoubts = {{
    {GapAbout::gpu_link, "link-unsure", "its NVLink, C2C or xGMI links are in doubt",
     "compare with `nvidia-smi nvlink -s`; of a GPU for which its file lists no NVLinks NCCL asks "
     "the driver"},
    {GapAbout::placement, "place-unsure", "its place in the host is in doubt",
     "list it once, where it is wired"},
    {GapAbout::fabric, "fabric-unsure", "its NVLink fabric is in doubt",
     "see Fabric in `nvidia-smi -q`, and the log of the fabric manager or of IMEX"},
}};

// Gaps about PCIe links and line rates are found from the devices themselves.
void check_gaps(Suspect& suspect) {
  std::map<std::string_view, uint32_t> by_label;
  for (uint32_t i = 0; i < suspect.machine.devices().size(); i++)
    by_label.emplace(suspect.device(i).label, i);
  for (const Gap& gap : suspect.machine.gaps()) {
    const auto device = by_label.find(gap.device);
    if (device == by_label.end()) continue;
    const uint32_t i = device->second;
    if (gap.about == GapAbout::numa_node) check_numa(suspect, gap, i);
    for (const Doubt& doubt : kDoubts)
      if (gap.about == doubt.about)
        suspect.find(Severity::warning, doubt.check, {i}, doubt.what, gap.text(), doubt.advice);
  }
}

void check_rails(Suspect& suspect) {
  if (!suspect.rails.best)
    suspect.find(Severity::note, "rails-rough", {},
                 "more GPUs and ports than the best matching is sought for",
                 "the nearest were paired first",
                 "leave out ports that carry no traffic (CROSSTIE_HCA or NCCL_IB_HCA)");
}

std::vector<Finding> check(const Machine& machine) {
  Suspect suspect(machine);
  check_rails(suspect);
  check_nvlinks(suspect);
  check_pcie(suspect);
  check_peers(suspect);
  check_ports(suspect);
  check_refusals(suspect);
  check_distances(suspect);
  check_gaps(suspect);
  check_guids(suspect);
  check_cpus(suspect);
  return std::move(suspect.findings);
}

constexpr const char* kOneMtu = "give all ports of a fabric one MTU";

// Within a host by link layer, which one fabric has; of hosts by rail too.
using Mtus = std::map<int, std::vector<std::string>>;  // labels of ports, or hosts
struct FabricMtus {
  std::map<std::string, Mtus> own;  // by link layer
  std::map<std::pair<std::string, uint32_t>, std::set<int>> by_rail;
};

FabricMtus mtus_of(const Machine& machine) {
  FabricMtus out;
  for (const Rails::Port& port : match_rails(machine).ports) {
    const Device& d = machine.devices()[port.device];
    if (!d.mtu || !port.rail) continue;
    const std::string layer = d.link_layer ? d.link_layer->value : "";
    out.own[layer][d.mtu->value].push_back(d.label);
    out.by_rail[{layer, *port.rail}].insert(d.mtu->value);
  }
  return out;
}

// The MTUs of the ports that serve. Hosts of which one is uneven are told of as such, and not
// beside the others.
void check_mtus(const std::vector<Alike>& groups, std::vector<Finding>& out) {
  std::map<std::pair<std::string, uint32_t>, Mtus> all;
  for (const Alike& group : groups) {
    const FabricMtus mtus = mtus_of(*group.machine);
    bool even = true;
    for (const auto& [layer, own] : mtus.own) {
      if (own.size() < 2) continue;
      even = false;
      for (const auto& [mtu, ports] : own)
        out.push_back({Severity::warning, "mtu", groups.size() > 1 ? group.text() : "", ports,
                       "ports of one host have different MTUs", fmt::format("{} bytes", mtu),
                       kOneMtu});
    }
    if (!even) continue;
    for (const auto& [key, values] : mtus.by_rail)
      for (const int mtu : values) all[key][mtu].push_back(group.text());
  }
  std::set<std::pair<int, std::string>> odd;
  for (const auto& [key, mtus] : all)
    for (const auto& [mtu, hosts] : mtus)
      for (const std::string& host : hosts)
        if (mtus.size() > 1) odd.emplace(mtu, host);
  for (const auto& [mtu, host] : odd)
    out.push_back({Severity::warning,
                   "mtu",
                   host,
                   {},
                   "hosts have different MTUs",
                   fmt::format("{} bytes", mtu),
                   kOneMtu});
}

// What hosts that are meant to be alike have in common: models of GPUs, whatever their number.
std::string kind_of(const Machine& machine) {
  std::set<std::string> models;
  for (const Device& d : machine.devices())
    if (d.kind == DeviceKind::gpu)
      models.insert(
          d.model ? d.model->value
                  : fmt::format("{}", d.compute_capability ? d.compute_capability->value : 0));
  return fmt::format("{}", fmt::join(models, ", "));
}

void report_odd(const Alike& usual, const Alike& odd, std::vector<Finding>& out) {
  const auto differences = diff(*usual.machine, *odd.machine);
  if (differences.empty()) return;
  std::vector<std::string> shown;
  for (size_t i = 0; i < differences.size() && i < kMostShown; i++)
    shown.push_back(to_text(differences[i], usual.hosts[0]->name, odd.hosts[0]->name));
  if (differences.size() > kMostShown)
    shown.push_back(fmt::format("{} more", differences.size() - kMostShown));
  out.push_back({Severity::warning,
                 "odd-host",
                 odd.text(),
                 {},
                 fmt::format("is unlike {}", usual.text()),
                 fmt::format("{}", fmt::join(shown, "; ")),
                 "`crosstie topo diff` of the two shows all"});
}

void check_kinds(const std::vector<Alike>& groups, std::vector<Finding>& out) {
  std::map<std::string, std::vector<const Alike*>> kinds;
  for (const Alike& group : groups) kinds[kind_of(*group.machine)].push_back(&group);
  for (const auto& [kind, members] : kinds) {
    const Alike* const usual = *std::ranges::max_element(
        members, {}, [](const Alike* group) { return group->hosts.size(); });
    for (const Alike* odd : members)
      if (odd != usual) report_odd(*usual, *odd, out);
  }
}

}  // namespace

Suspect::Suspect(const Machine& machine_)
    : machine(machine_),
      paths(machine_, Paths::View::physical),
      rails(match_rails(machine_, paths)),
      gpus(machine_.whole_gpus()) {
  for (const uint32_t nic : machine.of_kind(DeviceKind::nic))
    if (device(nic).identity.bdf) nics.push_back(nic);
  for (const Rails::Port& port : rails.ports) {
    if (!device(device(port.device).parent).identity.bdf) continue;
    ports.push_back(port.device);
    if (port.can_serve) usable.push_back(port.device);
  }
}

void Suspect::find(Severity severity, std::string_view check, std::vector<uint32_t> of,
                   std::string what, std::string evidence, std::string advice) {
  std::vector<std::string> labels;
  for (const uint32_t i : of) labels.push_back(device(i).label);
  findings.push_back({severity,
                      check,
                      {},
                      std::move(labels),
                      std::move(what),
                      std::move(evidence),
                      std::move(advice)});
}

std::string kind_of(const Device& d) {
  if (d.model) return d.model->value;
  if (d.pci_ids)
    return fmt::format("{:04x}:{:04x}", d.pci_ids->value.vendor, d.pci_ids->value.device);
  return d.compute_capability ? fmt::format("{}", d.compute_capability->value) : "";
}

std::vector<Finding> check(const Topology& topology) {
  const auto groups = group(topology);
  std::vector<Finding> out;
  for (const Alike& group : groups)
    for (Finding& finding : check(*group.machine)) {
      if (topology.hosts.size() > 1) finding.host = group.text();
      out.push_back(std::move(finding));
    }
  check_mtus(groups, out);
  check_kinds(groups, out);
  return sorted(std::move(out));
}

}  // namespace crosstie
