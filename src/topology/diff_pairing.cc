// SPDX-License-Identifier: Apache-2.0
// The surest sign first; a key that several devices of one side have is no sign.
#include "topology/diff_pairing.h"

#include <map>
#include <set>

namespace crosstie {
namespace {

bool is_partition(const Machine& machine, const Device& d) {
  return d.kind == DeviceKind::gpu && machine.is_part(d);
}

// Devices of different kinds, hosts or levels are never the same; nor are two keys alike.
std::string qualified(const Machine& machine, const Device& d, std::string_view key) {
  return fmt::format("{} {}{} {}", d.host, name(d.kind), is_partition(machine, d) ? " part" : "",
                     key);
}

}  // namespace

Pairing::Pairing(const Machine& first, const Machine& second)
    : sides_{{first, std::vector<uint32_t>(first.devices().size(), kNoDevice), true},
             {second, std::vector<uint32_t>(second.devices().size(), kNoDevice), false}} {
  const auto by = [this](auto&& text_of) {
    return pair_by([&](const Side& side, uint32_t i) {
      const std::string text = text_of(side.device(i).identity);
      return text.empty() ? text : qualified(side.machine, side.device(i), text);
    });
  };
  uint32_t surely = by([](const Identity& id) { return id.uuid; });
  surely += by([](const Identity& id) {
    return id.guid ? fmt::format("{} {}", *id.guid, id.number.value_or(0)) : std::string();
  });
  same_host_ = surely > 0;
  by([](const Identity& id) { return id.bdf ? to_text(*id.bdf) : std::string(); });
  by([](const Identity& id) {
    return id.name.empty() && !id.number
               ? std::string()
               : fmt::format("{} {}", id.name, id.number.value_or(UINT32_MAX));
  });
  pair_owners_of_ports();
  pair_switches();
  pair_by_place();
  pair_by_order();
  pair_by_place();
  pair_switches();
}

uint32_t Pairing::pair_by(const Key& key) {
  std::map<std::string, std::vector<uint32_t>> keys[2];
  for (size_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < sides_[s].partner.size(); i++)
      if (sides_[s].partner[i] == kNoDevice)
        if (const std::string text = key(sides_[s], i); !text.empty()) keys[s][text].push_back(i);
  uint32_t pairs = 0;
  for (const auto& [text, devices] : keys[0]) {
    const auto others = keys[1].find(text);
    if (devices.size() != 1 || others == keys[1].end() || others->second.size() != 1) continue;
    sides_[0].partner[devices[0]] = others->second[0];
    sides_[1].partner[others->second[0]] = devices[0];
    pairs++;
  }
  return pairs;
}

// A NIC whose address has changed is known by its first port.
void Pairing::pair_owners_of_ports() {
  std::map<uint32_t, uint32_t> first_port[2];
  for (size_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < sides_[s].partner.size(); i++)
      if (sides_[s].device(i).kind == DeviceKind::port)
        first_port[s].emplace(sides_[s].device(i).parent, sides_[s].common_name(i));
  pair_by([&](const Side& side, uint32_t i) {
    const auto& ports = first_port[side.is_first ? 0 : 1];
    const auto port = ports.find(i);
    return port == ports.end() || port->second == kNoDevice ? std::string()
                                                            : fmt::format("{}", port->second);
  });
}

// A switch is known by what is below it, and among those in a row by its order from the CPU.
void Pairing::pair_switches() {
  const std::vector<std::string> below[2] = {endpoints_below(sides_[0]),
                                             endpoints_below(sides_[1])};
  std::map<std::string, uint32_t> earlier[2];
  pair_by([&](const Side& side, uint32_t i) {
    const size_t s = side.is_first ? 0 : 1;
    if (side.device(i).kind != DeviceKind::pci_switch || below[s][i].empty()) return std::string();
    return fmt::format("{} #{}", below[s][i], earlier[s][below[s][i]]++);
  });
}

std::vector<std::string> Pairing::endpoints_below(const Side& side) {
  std::vector<std::set<uint32_t>> below(side.partner.size());
  std::vector<std::string> out(side.partner.size());
  for (uint32_t i = static_cast<uint32_t>(side.partner.size()); i-- > 0;) {
    const Device& d = side.device(i);
    if (d.kind != DeviceKind::pci_switch && side.common_name(i) != kNoDevice)
      below[i].insert(side.common_name(i));
    out[i] = fmt::format("{}", fmt::join(below[i], ","));
    if (d.parent != kNoDevice) below[d.parent].merge(below[i]);
  }
  return out;
}

// By what contains it and the order there.
void Pairing::pair_by_place() {
  std::map<std::string, uint32_t> earlier[2];
  pair_by([&](const Side& side, uint32_t i) {
    const Device& d = side.device(i);
    if (d.kind == DeviceKind::pci_switch) return std::string();
    const uint32_t above = paired_above(side, i);
    const std::string place = qualified(
        side.machine, d,
        above == kNoDevice ? std::string("host") : fmt::format("{}", side.common_name(above)));
    return fmt::format("{} #{}", place, earlier[side.is_first ? 0 : 1][place]++);
  });
}

// What is left of GPUs and the like is taken to be in another place rather than lost.
void Pairing::pair_by_order() {
  std::map<std::string, uint32_t> earlier[2];
  pair_by([&](const Side& side, uint32_t i) {
    const Device& d = side.device(i);
    if (d.kind != DeviceKind::gpu && d.kind != DeviceKind::nic && d.kind != DeviceKind::nvswitch)
      return std::string();
    const std::string kind = qualified(side.machine, d, "");
    return fmt::format("{} #{}", kind, earlier[side.is_first ? 0 : 1][kind]++);
  });
}

uint32_t Pairing::paired_above(const Side& side, uint32_t device) {
  do device = side.device(device).parent;
  while (device != kNoDevice && side.partner[device] == kNoDevice);
  return device;
}

}  // namespace crosstie
