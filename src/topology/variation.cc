// SPDX-License-Identifier: Apache-2.0
#include "topology/variation.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/edit_distance.h"
#include "base/numbers.h"
#include "base/text.h"
#include "topology/domain.h"
#include "topology/rails.h"
#include "topology/replay.h"

namespace crosstie {
namespace {

// Of a host; an NVLink domain has at most 576 GPUs.
constexpr uint32_t kMost = 1024;

// Gb/s: NICs have up to 1.6 Tb/s.
constexpr uint32_t kMostGigabits = 10000;

std::optional<uint32_t> number(std::string_view text, uint32_t least = 1, uint32_t most = kMost) {
  const auto value = number_of<uint32_t>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

// "400G": gigabits a second.
std::optional<Bandwidth> rate(std::string_view text) {
  if (text.empty() || text.back() != 'G') return std::nullopt;
  const auto gigabits_per_second = number(text.substr(0, text.size() - 1), 1, kMostGigabits);
  if (!gigabits_per_second) return std::nullopt;
  return gigabits(*gigabits_per_second);
}

// 8x400G, 8 or 400G.
bool read_nics(std::string_view text, Variation& to) {
  const size_t x = text.find('x');
  if (x == text.npos) {
    to.nic_rate = rate(text);
    if (!to.nic_rate) to.nics = number(text);
    return to.nic_rate || to.nics;
  }
  to.nics = number(text.substr(0, x)), to.nic_rate = rate(text.substr(x + 1));
  return to.nics && to.nic_rate;
}

// Giga-transfers a second and lane by generation (PCI-SIG).
bool read_pcie(std::string_view text, Variation& to) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kGenerations = {
      {{"gen3", 8}, {"gen4", 16}, {"gen5", 32}, {"gen6", 64}}};
  for (const auto& [generation, speed] : kGenerations)
    if (text == generation) to.pcie_speed = speed;
  return to.pcie_speed.has_value();
}

// By CPUID: Sapphire Rapids and Genoa, in hosts of H100 and later.
bool read_cpu(std::string_view text, Variation& to) {
  if (text == "intel") to.cpu = {"x86_64", "GenuineIntel", 6, 143};
  if (text == "amd") to.cpu = {"x86_64", "AuthenticAMD", 25, 17};
  return to.cpu.has_value();
}

bool read_network(std::string_view text, Variation& to) {
  to.network = std::string(text);
  return text == "infiniband" || text == "roce" || text == "sockets";
}

struct Row {
  std::string_view key, example, doc;
  bool (*read)(std::string_view, Variation&);
};
constexpr std::array kRows = {
    Row{"gpus", "4", "GPUs of a host: its first",
        [](std::string_view text, Variation& to) { return (to.gpus = number(text)).has_value(); }},
    Row{"nics", "8x400G", "NICs of a host and Gb/s of each; one alone as 8 or 400G", read_nics},
    Row{"network", "roce", "infiniband, roce or sockets", read_network},
    Row{"nvlinks", "12", "NVLinks of each GPU; 0: none",
        [](std::string_view text, Variation& to) {
          return (to.nvlinks = number(text, 0)).has_value();
        }},
    Row{"domain", "9", "hosts of an NVLink domain",
        [](std::string_view text, Variation& to) {
          return (to.domain = number(text)).has_value();
        }},
    Row{"pcie", "gen4", "gen3 to gen6", read_pcie},
    Row{"cpu", "amd", "intel or amd", read_cpu},
};

Status read_change(std::string_view change, std::set<std::string_view>& given, Variation& to) {
  const size_t equals = std::min(change.find('='), change.size());
  const std::string_view key = trim(change.substr(0, equals));
  const auto row = std::ranges::find(kRows, key, &Row::key);
  if (row == kRows.end()) {
    std::vector<std::string_view> keys;
    for (const Row& known : kRows) keys.push_back(known.key);
    const std::string_view meant = nearest(key, keys, 2);
    return fail(Code::invalid, "'{}' cannot be varied; write {}{}", change, variation_examples(),
                meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
  }
  if (!given.insert(row->key).second) return fail(Code::invalid, "'{}' is given twice", row->key);
  const std::string_view value = trim(change.substr(std::min(equals + 1, change.size())));
  if (!row->read(value, to))
    return fail(Code::invalid, "'{}': write {}={} ({})", change, row->key, row->example, row->doc);
  return {};
}

// Links of each GPU to others and to NVSwitches in other numbers.
class NvlinkChange {
 public:
  NvlinkChange(Machine::Parts& parts, uint32_t wanted) : parts_(parts), wanted_(wanted) {
    for (const Link& link : parts_.links)
      if (is_ours(link))
        for (const uint32_t end : {link.a, link.b}) of_[end].links += link.count, of_[end].peers++;
  }

  Status apply() {
    if (of_.empty()) return fail(Code::invalid, "there are no NVLinks to vary");
    std::map<uint32_t, uint32_t> next;  // of a GPU's NVSwitches
    for (Link& link : parts_.links)
      if (is_ours(link))
        if (const Status set = to_switch(link) ? share_out(link, next) : scale(link); !set)
          return set;
    std::erase_if(parts_.links, [](const Link& link) { return link.count == 0; });
    std::erase_if(parts_.nccl_links, [](const Link& l) { return l.type == LinkType::nvlink; });
    return {};
  }

 private:
  struct Count {
    uint32_t links = 0, peers = 0;
  };
  DeviceKind kind(uint32_t device) const { return parts_.devices[device].kind; }
  bool to_switch(const Link& link) const {
    return kind(link.a) == DeviceKind::nvswitch || kind(link.b) == DeviceKind::nvswitch;
  }
  bool is_ours(const Link& link) const {
    const auto joins = [&](uint32_t end) {
      return kind(end) == DeviceKind::gpu || kind(end) == DeviceKind::nvswitch;
    };
    return link.type == LinkType::nvlink && joins(link.a) && joins(link.b);
  }

  static void set(Link& link, uint32_t count) {
    if (link.bandwidth) link.bandwidth->value.bytes_per_second *= double(count) / link.count;
    link.count = count;
  }
  // As evenly as whole links can be.
  Status share_out(Link& link, std::map<uint32_t, uint32_t>& next) {
    const uint32_t gpu = kind(link.a) == DeviceKind::gpu ? link.a : link.b;
    const uint32_t switches = of_[gpu].peers;
    set(link, wanted_ / switches + (next[gpu]++ < wanted_ % switches ? 1 : 0));
    return {};
  }
  Status scale(Link& link) {
    const uint32_t links = of_[link.a].links;
    if (links != of_[link.b].links || link.count * wanted_ % links != 0)
      return fail(Code::invalid, "{} NVLinks of a GPU, {} of them to one peer, cannot become {}",
                  links, link.count, wanted_);
    set(link, link.count * wanted_ / links);
    return {};
  }

  Machine::Parts& parts_;
  const uint32_t wanted_;
  std::map<uint32_t, Count> of_;
};

// All else, by showing the machine's devices to a builder again.
class Change {
 public:
  Change(const Machine& machine, const Variation& by)
      : machine_(machine),
        by_(by),
        builder_(fmt::format("{}:{}", machine.name(), by.text), machine.source()),
        dropped_(machine.devices().size()),
        nics_(nics_of_network()) {}

  Result<Machine> run() {
    if (const Status chosen = choose_gpus(); !chosen) return pass(chosen);
    if (const Status chosen = choose_nics(); !chosen) return pass(chosen);
    if (by_.nvlinks) drop_bare_switches();
    builder_.share_nvswitches(machine_.hosts_in_domain());
    const auto seen = replay(machine_, builder_,
                             {[&](uint32_t index, Device& device) { return adjust(index, device); },
                              [&](const Gap& gap) { return stays(gap); },
                              {}});
    for (const auto& [nic, copies] : copies_)
      for (uint32_t copy = 0; copy < copies; copy++) add_copy(nic, copy, seen);
    return std::move(builder_).build();
  }

 private:
  // Those with RDMA, if any have it: what else there is, is for management.
  std::vector<uint32_t> nics_of_network() const {
    std::vector<bool> rdma(machine_.devices().size());
    for (const Device& d : machine_.devices())
      if (d.kind == DeviceKind::port && has_rdma(d)) rdma[d.parent] = true;
    auto nics = machine_.endpoints(DeviceKind::nic);
    const auto has = [&](uint32_t nic) { return rdma[nic]; };
    if (std::ranges::any_of(nics, has)) std::erase_if(nics, std::not_fn(has));
    return nics;
  }

  Status choose_gpus() {
    const auto gpus = machine_.whole_gpus();
    if (!by_.gpus) return {};
    if (*by_.gpus > gpus.size())
      return fail(Code::invalid, "gpus={}: there are {}; describe a host of more in a file",
                  *by_.gpus, gpus.size());
    for (size_t i = *by_.gpus; i < gpus.size(); i++) dropped_[gpus[i]] = true;
    return {};
  }

  void drop_bare_switches() {
    std::vector<bool> linked(dropped_.size());
    for (const Link& link : machine_.links())
      if (link.type == LinkType::nvlink) linked[link.a] = linked[link.b] = true;
    for (const uint32_t hub : machine_.of_kind(DeviceKind::nvswitch))
      if (!linked[hub]) dropped_[hub] = true;
  }

  // Of fewer every so manieth stays; more are copies beside them, in turn.
  Status choose_nics() {
    const bool any = by_.nics || by_.nic_rate || by_.network;
    if (any && nics_.empty()) return fail(Code::invalid, "there are no NICs to vary");
    const auto have = static_cast<uint32_t>(nics_.size()), want = by_.nics.value_or(have);
    if (want < have) {
      for (const uint32_t nic : nics_) dropped_[nic] = true;
      for (uint32_t i = 0; i < want; i++) dropped_[nics_[size_t{i} * have / want]] = false;
    }
    for (uint32_t i = have; i < want; i++) copies_[nics_[i % have]]++;
    return {};
  }

  bool adjust(uint32_t index, Device& device) {
    const uint32_t parent = machine_.devices()[index].parent;
    if (parent != kNoDevice && dropped_[parent]) dropped_[index] = true;
    if (dropped_[index]) return false;
    if (by_.cpu && device.cpu) {
      device.cpu = known(*by_.cpu, Provenance::file);
      device.model.reset();
    }
    if (by_.pcie_speed && device.pcie_speed) {
      device.pcie_speed = known(*by_.pcie_speed, Provenance::file);
      device.pcie_speed_now.reset();
    }
    if (device.kind == DeviceKind::port && std::ranges::count(nics_, parent) > 0)
      adjust_port(device);
    if (by_.network && std::ranges::count(nics_, index) > 0) device.pci_ids.reset();  // its maker
    return true;
  }

  void adjust_port(Device& port) const {
    if (by_.nic_rate) port.line_rate = known(*by_.nic_rate, Provenance::file);
    if (!by_.network) return;
    const bool rdma = *by_.network != "sockets";
    port.identity.number = rdma ? 1 : 0;
    port.identity.name = port.label = fmt::format("{}-{}", *by_.network, port.label);
    port.link_layer = known<std::string>(*by_.network == "infiniband" ? "InfiniBand" : "Ethernet",
                                         Provenance::file);
  }

  bool stays(const Gap& gap) const {
    if (gap.about == GapAbout::line_rate && by_.nic_rate) return false;
    if (gap.about == GapAbout::pcie_link && by_.pcie_speed) return false;
    const auto at = std::ranges::find(machine_.devices(), gap.device, &Device::label);
    return at == machine_.devices().end() ||
           !dropped_[static_cast<size_t>(at - machine_.devices().begin())];
  }

  // The NIC with its ports, without what identifies the one that it is like.
  void add_copy(uint32_t nic, uint32_t copy, const std::vector<uint32_t>& seen) {
    std::map<uint32_t, uint32_t> copied;
    for (uint32_t i = nic; i < seen.size(); i++) {
      const uint32_t parent = machine_.devices()[i].parent;
      if (i != nic && !copied.contains(parent)) continue;
      const Device& like = builder_.device(seen[i]);
      Device device{.kind = like.kind, .parent = i == nic ? like.parent : copied[parent]};
      device.label = fmt::format("{}-copy{}", like.label, copy + 1);
      if (!like.identity.name.empty()) device.identity.name = device.label;
      device.identity.number = like.identity.number;
      device.model = like.model, device.pci_ids = like.pci_ids;
      device.pcie_speed = like.pcie_speed, device.pcie_lanes = like.pcie_lanes;
      device.line_rate = like.line_rate, device.link_layer = like.link_layer;
      device.latency = like.latency, device.gpu_direct = like.gpu_direct;
      copied[i] = builder_.see(device);
    }
  }

  const Machine& machine_;
  const Variation& by_;
  Builder builder_;
  std::vector<bool> dropped_;
  const std::vector<uint32_t> nics_;
  std::map<uint32_t, uint32_t> copies_;  // by NIC
};

Result<Machine> vary(const Machine& machine, const Variation& by) {
  Machine::Parts parts = machine.parts();
  if (by.nvlinks)
    if (const Status changed = NvlinkChange(parts, *by.nvlinks).apply(); !changed)
      return pass(changed);
  if (by.domain) {
    if (machine.count(DeviceKind::nvswitch) == 0)
      return fail(Code::invalid, "domain={}: there is no NVSwitch that could join hosts",
                  *by.domain);
    parts.hosts_in_domain = *by.domain;
  }
  const Machine linked(std::move(parts));
  return Change(linked, by).run();
}

}  // namespace

Varied split_variation(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.find('=', colon) == text.npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string variation_examples() {
  std::vector<std::string> examples;
  for (const Row& row : kRows) examples.push_back(fmt::format("{}={}", row.key, row.example));
  return fmt::format("{}", fmt::join(examples, ", "));
}

Result<Variation> parse_variation(std::string_view changes) {
  Variation variation{std::string(changes)};
  std::set<std::string_view> given;
  for (size_t from = 0; from <= changes.size();) {
    const size_t comma = std::min(changes.find(',', from), changes.size());
    const Status read = read_change(changes.substr(from, comma - from), given, variation);
    if (!read) return pass(read);
    from = comma + 1;
  }
  return variation;
}

Result<Topology> vary(const Topology& topology, const Variation& by) {
  Topology out = topology;
  std::map<const Machine*, std::shared_ptr<const Machine>> varied;
  for (Host& host : out.hosts) {
    auto& machine = varied[host.machine.get()];
    if (!machine) {
      auto made = vary(*host.machine, by);
      if (!made) return pass(made);
      machine = std::make_shared<const Machine>(std::move(*made));
    }
    host.machine = machine;
    host.leaves.clear(), host.units.clear();
    if (by.domain) host.domain.clear();
  }
  out.leaves.clear();
  if (by.domain) assume_domains(out.hosts, "varied");
  return out;
}

}  // namespace crosstie
