// SPDX-License-Identifier: Apache-2.0
#include "topology/machine.h"

#include <algorithm>
#include <set>

namespace crosstie {
namespace {

// An idle GPU slows its link, so that the present speed tells the hour and not the kind.
bool alike(const Device& a, const Device& b) {
  if (a.kind != DeviceKind::gpu || a.pcie_speed_now == b.pcie_speed_now) return a == b;
  Device same = a;
  same.pcie_speed_now = b.pcie_speed_now;
  return same == b;
}

}  // namespace

bool same_kind(const Machine& a, const Machine& b) {
  return std::ranges::equal(a.devices(), b.devices(), alike) &&
         std::ranges::equal(a.links(), b.links()) && std::ranges::equal(a.gaps(), b.gaps()) &&
         std::ranges::equal(a.refusals(), b.refusals()) &&
         std::ranges::equal(a.nccl_links(), b.nccl_links()) &&
         a.hosts_in_domain() == b.hosts_in_domain();
}

std::vector<uint32_t> Machine::of_kind(DeviceKind kind) const {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < devices().size(); i++)
    if (devices()[i].kind == kind) out.push_back(i);
  return out;
}

bool Machine::is_part(const Device& device) const {
  return device.parent != kNoDevice && crosstie::is_part(device, devices()[device.parent]);
}

bool Machine::has_no_peers(const Device& device) const {
  constexpr uint16_t kAmd = 0x1002;  // vendor on PCI
  if (device.kind != DeviceKind::gpu || !is_part(device)) return false;
  const Property<PciIds>& ids = devices()[device.parent].pci_ids;
  return !ids || ids->value.vendor != kAmd;
}

std::vector<uint32_t> Machine::whole_gpus() const {
  auto out = of_kind(DeviceKind::gpu);
  std::erase_if(out, [&](uint32_t i) { return is_part(devices()[i]); });
  return out;
}

uint32_t Machine::host_count() const {
  uint32_t count = 1;
  for (const Device& d : devices()) count = std::max(count, d.host + 1);
  return count;
}

std::vector<uint32_t> Machine::endpoints(DeviceKind kind) const {
  std::vector<bool> divided(devices().size());
  for (const Device& d : devices())
    if (is_part(d)) divided[d.parent] = true;
  auto out = of_kind(kind);
  std::erase_if(out, [&](uint32_t i) {
    return kind == DeviceKind::gpu ? divided[i] : is_part(devices()[i]);
  });
  return out;
}

std::vector<Link> Machine::links_as_nccl_takes_them() const {
  const auto place = [](const Link& link) { return std::tuple(link.a, link.b, link.type); };
  std::set<std::tuple<uint32_t, uint32_t, LinkType>> replaced;
  std::vector<Link> out;
  for (const Link& link : nccl_links()) {
    replaced.insert(place(link));
    if (link.bandwidth) out.push_back(link);
  }
  for (const Link& link : links())
    if (!replaced.contains(place(link))) out.push_back(link);
  std::ranges::stable_sort(out, {}, place);
  return out;
}

}  // namespace crosstie
