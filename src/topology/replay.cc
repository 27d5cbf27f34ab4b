// SPDX-License-Identifier: Apache-2.0
#include "topology/replay.h"

#include <map>

namespace crosstie {
namespace {

// Such links builders make themselves.
bool follows_from_devices(const Machine& machine, const Link& link) {
  const auto devices = machine.devices();
  const bool contains = devices[link.b].parent == link.a;
  return link.type == LinkType::sys || link.type == LinkType::pci || link.type == LinkType::net ||
         (link.type == LinkType::local && contains);
}

// What NCCL takes for true, but for what builders make out of PCIe speeds again, and for ports
// whose rate was corrected.
void replay_nccl_links(const Machine& machine, Builder& builder,
                       const std::vector<uint32_t>& seen) {
  for (const Link& link : machine.nccl_links()) {
    const uint32_t a = seen[link.a], b = seen[link.b];
    if (link.type == LinkType::pci || a == kNoDevice || b == kNoDevice) continue;
    if (builder.device(b).line_rate == machine.devices()[link.b].line_rate)
      builder.nccl_takes({a, b, link.type, link.count, link.bandwidth});
  }
}

// By index where the device is known, as a builder may name it otherwise.
void replay_gaps(const Machine& machine, Builder& builder, const std::vector<uint32_t>& seen,
                 const Replay& how) {
  std::map<std::string_view, uint32_t> by_label;
  for (uint32_t i = 0; i < seen.size(); i++) by_label.emplace(machine.devices()[i].label, seen[i]);
  for (const Gap& gap : machine.gaps()) {
    if (!how.keep(gap)) continue;
    const auto found = by_label.find(gap.device);
    if (found != by_label.end() && found->second != kNoDevice)
      builder.gap(found->second, gap.missing, gap.assumed, gap.about);
    else
      builder.gap(how.prefix + gap.device, gap.missing, gap.assumed, gap.about);
  }
}

}  // namespace

std::vector<uint32_t> replay(const Machine& machine, Builder& builder, const Replay& how) {
  std::vector<uint32_t> seen(machine.devices().size(), kNoDevice);
  for (uint32_t i = 0; i < seen.size(); i++) {
    Device device = machine.devices()[i];
    if (device.parent != kNoDevice) device.parent = seen[device.parent];
    device.label = how.prefix + device.label;
    if (how.adjust(i, device)) seen[i] = builder.see(std::move(device));
  }
  for (const Link& link : machine.links()) {
    const uint32_t a = seen[link.a], b = seen[link.b];
    if (a != kNoDevice && b != kNoDevice && !follows_from_devices(machine, link) &&
        !builder.has_link(a, b, link.type))
      builder.link(a, b, {link.type, link.count, link.bandwidth});
  }
  for (const Refusal& refusal : machine.refusals())
    if (seen[refusal.a] != kNoDevice && seen[refusal.b] != kNoDevice)
      builder.refuse(seen[refusal.a], seen[refusal.b], refusal.why);
  replay_nccl_links(machine, builder, seen);
  replay_gaps(machine, builder, seen, how);
  return seen;
}

}  // namespace crosstie
