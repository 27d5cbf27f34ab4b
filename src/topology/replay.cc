// SPDX-License-Identifier: Apache-2.0
#include "topology/replay.h"

namespace crosstie {
namespace {

// Such links builders make themselves.
bool follows_from_devices(const Machine& machine, const Link& link) {
  const auto devices = machine.devices();
  const bool contains = devices[link.b].parent == link.a;
  return link.type == LinkType::sys || link.type == LinkType::pci || link.type == LinkType::net ||
         (link.type == LinkType::local && contains);
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
  for (const Gap& gap : machine.gaps())
    if (how.keep(gap)) builder.gap(how.prefix + gap.device, gap.missing, gap.assumed);
  return seen;
}

}  // namespace crosstie
