// SPDX-License-Identifier: Apache-2.0
// What holds of every Machine, whatever it was read from.
#include <algorithm>
#include <set>

#include "topology/machine.h"

namespace crosstie {
namespace {

// Readers and writers go down trees by calling themselves. Real ones end after a dozen levels.
constexpr uint32_t kDeepest = 256;

tl::unexpected<Error> broken(const Machine& machine, const Device& device, std::string_view what) {
  return fail(Code::internal, "{}: {} {}", machine.source(), device.label, what);
}

// A NIC may hold a PCIe switch of its own with devices behind it.
bool may_contain(DeviceKind parent, DeviceKind child) {
  switch (child) {
    case DeviceKind::cpu:
      return false;
    case DeviceKind::numa:
      return parent == DeviceKind::cpu;
    case DeviceKind::port:
      return parent == DeviceKind::nic;
    default:
      return parent == DeviceKind::numa || on_pci(parent);
  }
}

bool may_stand_alone(DeviceKind kind) {
  return kind == DeviceKind::cpu || kind == DeviceKind::numa || kind == DeviceKind::nvswitch;
}

uint32_t first_numa_node(std::span<const Device> devices) {
  uint32_t i = 0;
  while (devices[i].kind != DeviceKind::numa) i++;
  return i;
}

Status check_place(const Machine& machine, uint32_t index) {
  const Device& d = machine.devices()[index];
  if (d.parent == kNoDevice) {
    if (!may_stand_alone(d.kind)) return broken(machine, d, "is in nothing");
    return {};
  }
  if (d.parent >= index) return broken(machine, d, "comes before what contains it");
  if (!may_contain(machine.devices()[d.parent].kind, d.kind))
    return broken(machine, d, "is in a device that cannot contain it");
  return {};
}

Status check_depth(const Machine& machine) {
  const auto devices = machine.devices();
  std::vector<uint32_t> depth(devices.size(), 1);
  for (uint32_t i = 0; i < devices.size(); i++) {
    if (devices[i].parent != kNoDevice) depth[i] += depth[devices[i].parent];
    if (depth[i] > kDeepest)
      return broken(machine, devices[i], fmt::format("is nested more than {} deep", kDeepest));
  }
  return {};
}

// They are numbered without holes.
Status check_hosts(const Machine& machine) {
  const auto devices = machine.devices();
  std::vector<bool> has_devices(devices.size());
  uint32_t hosts = 0;
  for (const Device& d : devices) {
    if (d.host >= devices.size()) return broken(machine, d, "is of a host beyond the last");
    has_devices[d.host] = true;
    hosts = std::max(hosts, d.host + 1);
  }
  for (uint32_t host = 0; host < hosts; host++)
    if (!has_devices[host])
      return fail(Code::internal, "{}: host {} of {} has no device", machine.source(), host, hosts);
  return {};
}

Status check_properties(const Machine& machine) {
  for (const Device& d : machine.devices()) {
    if (d.pcie_speed.has_value() != d.pcie_lanes.has_value())
      return broken(machine, d, "tells one of the speed and the lanes of its PCIe link alone");
    if (d.kind == DeviceKind::port && !d.line_rate) return broken(machine, d, "has no line rate");
  }
  return {};
}

Status check_identities(const Machine& machine) {
  std::set<std::string> labels;
  std::set<std::tuple<uint32_t, DeviceKind, Bdf, std::string, std::optional<uint32_t>>> addresses;
  std::set<std::tuple<uint32_t, DeviceKind, uint32_t>> numbers;
  for (const Device& d : machine.devices()) {
    if (d.label.empty() || !labels.insert(d.label).second)
      return broken(machine, d, "has no label of its own");
    if (d.identity.bdf &&
        !addresses
             .emplace(d.host, d.kind, *d.identity.bdf, d.identity.uuid,
                      d.kind == DeviceKind::gpu ? d.identity.number : std::nullopt)
             .second)
      return broken(machine, d, "shares the identity of another device");
    const bool numbered =
        d.identity.number && d.kind != DeviceKind::port && d.kind != DeviceKind::gpu;
    if (numbered && !numbers.emplace(d.host, d.kind, *d.identity.number).second)
      return broken(machine, d, "shares the number of another");
  }
  return {};
}

Status check_link(const Machine& machine, const Link& link) {
  const auto devices = machine.devices();
  if (link.a >= link.b || link.b >= devices.size())
    return fail(Code::internal, "{}: a link between devices {} and {}", machine.source(), link.a,
                link.b);
  if (link.count == 0) return broken(machine, devices[link.a], "has a link of no lanes");
  if (link.bandwidth && !(link.bandwidth->value.bytes_per_second > 0))
    return broken(machine, devices[link.a], "has a link that carries nothing");
  return {};
}

// Ascending by ends and type, each once.
Status check_links(const Machine& machine, std::span<const Link> links) {
  for (const Link& link : links)
    if (const Status right = check_link(machine, link); !right) return right;
  const auto follows = [](const Link& one, const Link& next) {
    return std::tie(one.a, one.b, one.type) < std::tie(next.a, next.b, next.type);
  };
  for (size_t i = 1; i < links.size(); i++)
    if (!follows(links[i - 1], links[i]))
      return broken(machine, machine.devices()[links[i].a], "has a link twice or out of order");
  return {};
}

// A port always has a link to its NIC: what NCCL may mistake is its rate.
Status check_nccl_links(const Machine& machine) {
  for (const Link& link : machine.nccl_links())
    if (link.type == LinkType::net && !link.bandwidth)
      return broken(machine, machine.devices()[link.b], "has for NCCL a line rate that is unknown");
  return {};
}

Status check_refusal(const Machine& machine, const Refusal& refusal) {
  const auto devices = machine.devices();
  if (refusal.a >= refusal.b || refusal.b >= devices.size() ||
      devices[refusal.a].kind != DeviceKind::gpu || devices[refusal.b].kind != DeviceKind::gpu)
    return fail(Code::internal, "{}: a refusal between devices {} and {}, which are no two GPUs",
                machine.source(), refusal.a, refusal.b);
  return {};
}

Status check_refusals(const Machine& machine) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const Refusal& refusal : machine.refusals()) {
    if (const Status right = check_refusal(machine, refusal); !right) return right;
    if (!pairs.emplace(refusal.a, refusal.b).second)
      return broken(machine, machine.devices()[refusal.a], "has a refusal twice");
  }
  return {};
}

// Every device is reached from the first NUMA node over links. Packages merely contain.
Status check_connected(const Machine& machine) {
  const auto devices = machine.devices();
  std::vector<std::vector<uint32_t>> neighbours(devices.size());
  for (const Link& link : machine.links()) {
    neighbours[link.a].push_back(link.b);
    neighbours[link.b].push_back(link.a);
  }
  std::vector<bool> reached(devices.size());
  std::vector<uint32_t> waiting;
  const auto reach = [&](uint32_t i) {
    if (!reached[i]) waiting.push_back(i);
    reached[i] = true;
  };
  reach(first_numa_node(devices));
  while (!waiting.empty()) {
    const uint32_t next = waiting.back();
    waiting.pop_back();
    for (const uint32_t i : neighbours[next]) reach(i);
  }
  for (uint32_t i = 0; i < devices.size(); i++)
    if (!reached[i] && devices[i].kind != DeviceKind::cpu)
      return broken(machine, devices[i], "is linked to nothing that leads to a CPU");
  return {};
}

// What is not known must be owned up to.
Status check_gaps(const Machine& machine) {
  std::set<std::string_view> gaps;
  for (const Gap& gap : machine.gaps()) {
    if (gap.missing.empty()) return fail(Code::internal, "{}: a gap of nothing", machine.source());
    gaps.insert(gap.device);
  }
  for (const Link& link : machine.links())
    if (!link.bandwidth && !gaps.contains(machine.devices()[link.a].label) &&
        !gaps.contains(machine.devices()[link.b].label))
      return broken(machine, machine.devices()[link.a], "has a link of unknown speed and no gap");
  return {};
}

}  // namespace

Status validate(const Machine& machine) {
  if (machine.count(DeviceKind::numa) == 0)
    return fail(Code::internal, "{}: no NUMA node", machine.source());
  for (uint32_t i = 0; i < machine.devices().size(); i++)
    if (const Status place = check_place(machine, i); !place) return place;
  for (const auto check : {check_depth, check_hosts, check_properties, check_identities})
    if (const Status right = check(machine); !right) return right;
  for (const auto links : {machine.links(), machine.nccl_links()})
    if (const Status right = check_links(machine, links); !right) return right;
  for (const auto check : {check_nccl_links, check_refusals, check_connected})
    if (const Status right = check(machine); !right) return right;
  return check_gaps(machine);
}

}  // namespace crosstie
