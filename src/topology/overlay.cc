// SPDX-License-Identifier: Apache-2.0
#include "topology/overlay.h"

#include <algorithm>
#include <map>
#include <set>

#include "topology/rates.h"
#include "topology/replay.h"

namespace crosstie {
namespace {

constexpr uint32_t kBridge = 0x060400;  // PCI class

class Laying {
 public:
  Laying(const Machine& machine, const Overlay& overlay)
      : machine_(machine), overlay_(overlay), builder_(machine.name(), machine.source()) {}

  Result<Overlaid> run();

 private:
  Status expect_tree() const;
  Status expect_one_numa() const;
  Status expect_nics() const;
  Status find_devices();
  Status place(const Overlay::Correction& told);
  const Overlay::Switch* switch_around(const Overlay::Switch& inner) const;
  std::optional<uint32_t> numa_of(const Overlay::Switch& inner) const;
  std::optional<size_t> switch_above(uint32_t device) const;
  std::optional<uint32_t> match(const Bdf& bdf);
  void drop_emptied();
  uint32_t numa(uint32_t number);
  Status invent_switches();
  Result<Bdf> free_address();
  void nest_switches();
  void assume_switch_speeds();
  bool adjust(uint32_t index, Device& device);
  void set_pcie(Device& device) const;
  void set_speed(uint32_t index, Device& device);
  bool closes(const Gap& gap) const;
  void link_gpus(const std::vector<uint32_t>& seen);
  const Overlay::Correction* correction(const Device& device) const;
  uint32_t root_of(uint32_t index) const;

  const Machine& machine_;
  const Overlay& overlay_;
  Builder builder_;
  std::map<Bdf, uint32_t> by_bdf_;        // of the machine
  std::map<uint32_t, size_t> switch_of_;  // by device that moves
  std::map<uint32_t, uint32_t> numa_of_;  // by device right beneath a NUMA node
  std::vector<bool> gone_;
  std::set<const Device*> replaced_;  // NUMA nodes that another took the place of
  std::vector<uint32_t> switches_;    // in the builder
  std::set<Bdf> used_;
  std::vector<Bdf> unmatched_;
};

// Two devices of one address would be one to NCCL, and a circle of switches has no way to a CPU.
Status Laying::expect_tree() const {
  for (const Overlay::Switch& s : overlay_.switches) {
    if (!s.bdf) continue;
    const auto same = std::ranges::find(machine_.devices(), s.bdf,
                                        [](const Device& d) { return d.identity.bdf; });
    if (same != machine_.devices().end())
      return fail(Code::invalid,
                  "a [[switch]] has the address {} of {}; give it a free one or none",
                  to_text(*s.bdf), same->label);
    const Overlay::Switch* at = &s;
    for (size_t step = 0; at != nullptr && step < overlay_.switches.size(); step++) {
      at = switch_around(*at);
      if (at == &s)
        return fail(Code::invalid, "the [[switch]] at {} is beneath itself", to_text(*s.bdf));
    }
  }
  return {};
}

// Of switches beneath switches.
Status Laying::expect_one_numa() const {
  for (const Overlay::Switch& s : overlay_.switches) {
    const Overlay::Switch* const around = switch_around(s);
    if (around == nullptr || !s.numa) continue;
    if (const auto numa = numa_of(*around); numa != s.numa)
      return fail(Code::invalid,
                  "the [[switch]] at {} tells numa {}, and the one that it is beneath tells {}; "
                  "make them agree",
                  to_text(*s.bdf), *s.numa, numa ? std::to_string(*numa) : "none");
  }
  return {};
}

const Overlay::Switch* Laying::switch_around(const Overlay::Switch& inner) const {
  for (const Overlay::Switch& s : overlay_.switches)
    if (inner.bdf && std::ranges::find(s.devices, *inner.bdf) != s.devices.end()) return &s;
  return nullptr;
}

// Its own, or that of the switch which it is beneath.
std::optional<uint32_t> Laying::numa_of(const Overlay::Switch& inner) const {
  const Overlay::Switch* at = &inner;
  while (at != nullptr && !at->numa) at = switch_around(*at);
  return at == nullptr ? std::nullopt : at->numa;
}

Status Laying::find_devices() {
  for (uint32_t i = 0; i < machine_.devices().size(); i++) {
    const Device& d = machine_.devices()[i];
    if (!d.identity.bdf) continue;
    used_.insert(*d.identity.bdf);
    if (on_pci(d.kind)) by_bdf_.emplace(*d.identity.bdf, i);
  }
  for (const Overlay::Switch& s : overlay_.switches)
    if (s.bdf) used_.insert(*s.bdf);
  for (size_t k = 0; k < overlay_.switches.size(); k++)
    for (const Bdf& bdf : overlay_.switches[k].devices)
      if (const auto device = match(bdf)) switch_of_[*device] = k;
  for (const Overlay::Correction& c : overlay_.corrections)
    if (const Status placed = place(c); !placed) return pass(placed);
  return {};
}

// What is beneath a switch is on its NUMA node, and so is what shares a root port.
Status Laying::place(const Overlay::Correction& told) {
  const auto device = match(told.bdf);
  if (!device || !told.numa) return {};
  if (const auto at = switch_above(*device)) {
    const auto numa = numa_of(overlay_.switches[*at]);
    if (numa == told.numa) return {};
    return fail(Code::invalid,
                "the [[device]] at {} tells numa {}, and the [[switch]] that it is beneath tells "
                "{}; make them agree",
                to_text(told.bdf), *told.numa, numa ? std::to_string(*numa) : "none");
  }
  const auto [node, is_new] = numa_of_.emplace(root_of(*device), *told.numa);
  if (is_new || node->second == told.numa) return {};
  return fail(Code::invalid,
              "the [[device]] at {} tells numa {}, and another on its root port tells {}; make "
              "them agree",
              to_text(told.bdf), *told.numa, node->second);
}

// The overlay's that the device, or what contains it, moves to.
std::optional<size_t> Laying::switch_above(uint32_t device) const {
  for (; device != kNoDevice; device = machine_.devices()[device].parent)
    if (const auto found = switch_of_.find(device); found != switch_of_.end()) return found->second;
  return std::nullopt;
}

// Other devices have no ports.
Status Laying::expect_nics() const {
  for (const Overlay::Correction& c : overlay_.corrections) {
    const auto device = by_bdf_.find(c.bdf);
    if (!c.line_rate || device == by_bdf_.end()) continue;
    const Device& d = machine_.devices()[device->second];
    if (d.kind != DeviceKind::nic)
      return fail(Code::invalid,
                  "the [[device]] at {} has gigabits_per_second, and {} there is no NIC",
                  to_text(c.bdf), d.label);
  }
  return {};
}

std::optional<uint32_t> Laying::match(const Bdf& bdf) {
  const auto found = by_bdf_.find(bdf);
  if (found != by_bdf_.end()) return found->second;
  const bool is_ours =
      std::ranges::any_of(overlay_.switches, [&](const auto& s) { return s.bdf == bdf; });
  if (!is_ours && std::ranges::find(unmatched_, bdf) == unmatched_.end()) {
    unmatched_.push_back(bdf);
    builder_.gap(to_text(bdf), "the overlay names it, but there is no such device", "nothing");
  }
  return std::nullopt;
}

uint32_t Laying::root_of(uint32_t index) const {
  const auto devices = machine_.devices();
  while (devices[index].parent != kNoDevice && on_pci(devices[devices[index].parent].kind))
    index = devices[index].parent;
  return index;
}

// From the leaves up: devices come after what contains them. A NUMA node of no number goes too, if
// the overlay tells those of all its switches.
void Laying::drop_emptied() {
  const auto devices = machine_.devices();
  const bool tells_numa =
      std::ranges::all_of(overlay_.switches, [&](const auto& s) { return numa_of(s).has_value(); });
  std::vector<uint32_t> lost(devices.size()), kept(devices.size());
  gone_.assign(devices.size(), false);
  for (uint32_t i = static_cast<uint32_t>(devices.size()); i-- > 0;) {
    const Device& d = devices[i];
    const bool may_go = d.kind == DeviceKind::pci_switch ||
                        (d.kind == DeviceKind::numa && !d.identity.number && tells_numa);
    gone_[i] = may_go && lost[i] > 0 && kept[i] == 0;
    const bool leaves = gone_[i] || switch_of_.contains(i) || numa_of_.contains(i);
    if (d.parent != kNoDevice) (leaves ? lost : kept)[d.parent]++;
  }
}

// A node that the guest does not show is like one that it does. One without a number is what it
// takes the place of, so that what is told of that holds: a guest has one model of CPU. Elements
// that are not known are told once.
uint32_t Laying::numa(uint32_t number) {
  Device node{.kind = DeviceKind::numa, .label = fmt::format("numa{}", number)};
  node.identity.number = number;
  const auto rank = [&](const Device& d) {
    return std::tuple(d.identity.number == number, !d.identity.number, d.cpu.has_value());
  };
  const Device* like = nullptr;
  for (const Device& d : machine_.devices())
    if (d.kind == DeviceKind::numa && (like == nullptr || rank(d) > rank(*like))) like = &d;
  if (like == nullptr) return builder_.see(node);
  node.cpu = like->cpu;
  if (!like->identity.number)
    node.attributes = like->attributes;
  else if (node.cpu && like->identity.number != number)
    node.cpu->from = Provenance::assumed;
  if (gone_[static_cast<size_t>(like - machine_.devices().data())] && replaced_.insert(like).second)
    node.elements = like->elements;
  return builder_.see(node);
}

Result<Bdf> Laying::free_address() {
  for (int bus = 255; bus >= 0; bus--) {
    const Bdf bdf{0, static_cast<uint8_t>(bus), 0, 0};
    const auto next = used_.lower_bound(bdf);
    if (next != used_.end() && next->domain == 0 && next->bus == bus) continue;
    used_.insert(bdf);
    return bdf;
  }
  return fail(Code::unsupported, "no PCI bus is left for the overlay's switches; give them bdf");
}

Status Laying::invent_switches() {
  for (const Overlay::Switch& s : overlay_.switches) {
    const auto bdf = s.bdf ? Result<Bdf>(*s.bdf) : free_address();
    if (!bdf) return pass(bdf);
    Device d{.kind = DeviceKind::pci_switch};
    if (s.numa && switch_around(s) == nullptr) d.parent = numa(*s.numa);
    d.identity.bdf = *bdf;
    d.pci_class = known(kBridge, Provenance::assumed);
    d.pcie_speed = s.pcie_speed ? s.pcie_speed : overlay_.pcie_speed;
    d.pcie_lanes = s.pcie_lanes ? s.pcie_lanes : overlay_.pcie_lanes;
    switches_.push_back(builder_.see(d));
  }
  nest_switches();
  return {};
}

void Laying::nest_switches() {
  for (size_t k = 0; k < switches_.size(); k++)
    for (const Bdf& bdf : overlay_.switches[k].devices)
      for (size_t inner = 0; inner < switches_.size(); inner++)
        if (overlay_.switches[inner].bdf == bdf)
          builder_.see(
              {.kind = DeviceKind::pci_switch, .parent = switches_[k], .identity = {.bdf = bdf}});
}

// Of what is told, the widest beneath it, as the builder takes it of emulated bridges.
void Laying::assume_switch_speeds() {
  std::map<uint32_t, Device> widest;  // by device of the builder
  const auto rate = [](const Device& d) {
    return pcie_bandwidth(d.pcie_speed->value, d.pcie_lanes->value);
  };
  for (uint32_t i = 0; i < builder_.size(); i++) {
    const Device& d = builder_.device(i);
    if (!is_told(d.pcie_speed) || !is_told(d.pcie_lanes)) continue;
    for (uint32_t up = d.parent; up != kNoDevice; up = builder_.device(up).parent)
      if (const auto [at, is_new] = widest.try_emplace(up, d);
          !is_new && rate(at->second) < rate(d))
        at->second = d;
  }
  for (const uint32_t index : switches_) {
    const Device& d = builder_.device(index);
    const auto below = widest.find(index);
    if ((d.pcie_speed && d.pcie_lanes) || below == widest.end()) continue;
    const auto [speed, lanes] =
        std::pair(below->second.pcie_speed->value, below->second.pcie_lanes->value);
    builder_.gap(
        index, "the overlay does not tell its PCIe speed and width",
        fmt::format("{}, as beneath it", pcie_text(d.pcie_speed ? d.pcie_speed->value : speed,
                                                   d.pcie_lanes ? d.pcie_lanes->value : lanes)),
        GapAbout::pcie_link);
    builder_.merge(index, {.pcie_speed = known(speed, Provenance::assumed),
                           .pcie_lanes = known(lanes, Provenance::assumed)});
  }
}

const Overlay::Correction* Laying::correction(const Device& device) const {
  const auto found = std::ranges::find_if(overlay_.corrections, [&](const auto& c) {
    return device.identity.bdf && c.bdf == *device.identity.bdf;
  });
  return found == overlay_.corrections.end() ? nullptr : &*found;
}

// What was assumed is so again by the builder, which says so, unless the overlay tells it.
void Laying::set_pcie(Device& device) const {
  if (!is_told(device.pcie_speed)) device.pcie_speed.reset();
  if (!is_told(device.pcie_lanes)) device.pcie_lanes.reset();
  const Overlay::Correction* const told = correction(device);
  Property<double> speed = device.pcie_speed ? Property<double>{} : overlay_.pcie_speed;
  if (told != nullptr && told->pcie_speed) speed = told->pcie_speed;
  if (told != nullptr && told->pcie_lanes) device.pcie_lanes = told->pcie_lanes;
  if (!device.pcie_lanes) device.pcie_lanes = overlay_.pcie_lanes;
  if (!speed) return;
  device.pcie_speed = speed;
  device.attributes.erase("pci.link_speed");  // other words for what was told before
}

void Laying::set_speed(uint32_t index, Device& device) {
  set_pcie(device);
  if (device.kind != DeviceKind::port) return;
  const Overlay::Correction* const card =
      correction(machine_.devices()[machine_.devices()[index].parent]);
  if (card != nullptr && card->line_rate) device.line_rate = card->line_rate;
}

bool Laying::adjust(uint32_t index, Device& device) {
  if (gone_[index]) return false;
  if (on_pci(device.kind) || device.kind == DeviceKind::port) set_speed(index, device);
  if (const auto to = switch_of_.find(index); to != switch_of_.end())
    device.parent = switches_[to->second];
  else if (const auto node = numa_of_.find(index); node != numa_of_.end())
    device.parent = numa(node->second);
  return true;
}

// Gaps that the overlay closes; builders open them again where it does not.
bool Laying::closes(const Gap& gap) const {
  const auto device = std::ranges::find(machine_.devices(), gap.device, &Device::label);
  if (device == machine_.devices().end()) return false;
  const auto index = static_cast<uint32_t>(device - machine_.devices().begin());
  if (gone_[index]) return true;
  const Overlay::Correction* const card =
      device->parent == kNoDevice ? nullptr : correction(machine_.devices()[device->parent]);
  switch (gap.about) {
    case GapAbout::numa_node:
    case GapAbout::placement:
      return switch_of_.contains(index) || numa_of_.contains(root_of(index));
    case GapAbout::pcie_link:
      return true;
    case GapAbout::line_rate:
      return card != nullptr && card->line_rate;
    case GapAbout::gpu_link:
    case GapAbout::fabric:
    case GapAbout::other:
      return false;
  }
  return false;
}

void Laying::link_gpus(const std::vector<uint32_t>& seen) {
  if (overlay_.links_to_switch.empty()) return;
  std::vector<bool> has_links(seen.size());
  for (const Link& link : machine_.links())
    if (link.type == LinkType::nvlink) has_links[link.a] = has_links[link.b] = true;
  std::vector<uint32_t> bare;
  for (uint32_t i = 0; i < seen.size(); i++)
    if (machine_.devices()[i].kind == DeviceKind::gpu && !has_links[i]) bare.push_back(seen[i]);
  if (bare.empty())
    return builder_.gap("overlay", "it tells of NVLinks, and no GPU is without", "no other links");
  for (const uint32_t count : overlay_.links_to_switch) {
    const uint32_t hub = builder_.see({.kind = DeviceKind::nvswitch});
    for (const uint32_t gpu : bare) builder_.link(gpu, hub, {LinkType::nvlink, count});
  }
}

Result<Overlaid> Laying::run() {
  if (const Status right = expect_tree(); !right) return pass(right);
  if (const Status right = expect_one_numa(); !right) return pass(right);
  if (const Status found = find_devices(); !found) return pass(found);
  if (const Status right = expect_nics(); !right) return pass(right);
  drop_emptied();
  builder_.share_nvswitches(machine_.hosts_in_domain());
  if (const Status done = invent_switches(); !done) return pass(done);
  const auto seen = replay(machine_, builder_,
                           {[&](uint32_t index, Device& device) { return adjust(index, device); },
                            [&](const Gap& gap) { return !closes(gap); },
                            {}});
  assume_switch_speeds();
  link_gpus(seen);
  auto machine = std::move(builder_).build();
  if (!machine) return pass(machine, "the overlay");
  return Overlaid{std::move(*machine), std::move(unmatched_)};
}

}  // namespace

Result<Overlaid> lay_over(const Machine& machine, const Overlay& overlay) {
  return Laying(machine, overlay).run();
}

}  // namespace crosstie
