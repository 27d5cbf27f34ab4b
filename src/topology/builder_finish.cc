// SPDX-License-Identifier: Apache-2.0
// From sightings to a Machine: links are closed, what no source told is assumed and noted,
// devices are put in order and named.
#include <algorithm>
#include <set>

#include "topology/builder.h"
#include "topology/gpu_kinds.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

// NUMA nodes are joined all to all, so their number must stay small; the largest machines that
// Linux runs on have 64.
constexpr size_t kMostNumaNodes = 256;

std::vector<uint32_t> of_kind(const std::vector<Device>& devices, DeviceKind kind) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < devices.size(); i++)
    if (devices[i].kind == kind) out.push_back(i);
  return out;
}

std::string default_label(const Device& d, std::map<DeviceKind, uint32_t>& counters) {
  if (d.kind == DeviceKind::port && !d.identity.name.empty()) return d.identity.name;
  const bool numbered = d.kind == DeviceKind::numa || d.kind == DeviceKind::cpu;
  const std::string_view stem = d.kind == DeviceKind::pci_switch ? "switch" : name(d.kind);
  const uint32_t next = counters[d.kind]++;
  return fmt::format("{}{}", stem, numbered ? d.identity.number.value_or(next) : next);
}

}  // namespace

Result<Machine> Builder::build() && {
  resolve_open_links();
  adopt_orphans();
  if (of_kind(devices_, DeviceKind::numa).size() > kMostNumaNodes)
    return fail(Code::unsupported, "more than {} NUMA nodes", kMostNumaNodes);
  assume_properties();
  doubt_line_rates();
  link_parents();
  link_numa_nodes();
  parts_.links = merge_link_ends();
  doubt_pcie_speeds(parts_.links);
  doubt_bridges(parts_.links);
  doubt_nvlinks(parts_.links);
  const auto order = depth_first();
  give_labels(order);
  parts_.gaps = close_gaps();
  put_in_order(order);
  Machine machine(std::move(parts_));
  if (const Status valid = validate(machine); !valid) return pass(valid);
  return machine;
}

void Builder::put_in_order(const std::vector<uint32_t>& order) {
  std::vector<uint32_t> place(devices_.size());
  for (uint32_t i = 0; i < order.size(); i++) place[order[i]] = i;
  for (auto* links : {&parts_.links, &parts_.nccl_links}) {
    for (Link& link : *links)
      std::tie(link.a, link.b) = std::minmax({place[link.a], place[link.b]});
    std::ranges::sort(*links, {}, [](const Link& l) { return std::tuple(l.a, l.b, l.type); });
  }
  std::set<std::pair<uint32_t, uint32_t>> refused;
  std::erase_if(parts_.refusals, [&](Refusal& refusal) {
    std::tie(refusal.a, refusal.b) = std::minmax({place[refusal.a], place[refusal.b]});
    return !refused.emplace(refusal.a, refusal.b).second;
  });
  for (const uint32_t i : order) {
    Device& d = devices_[i];
    if (d.parent != kNoDevice) d.parent = place[d.parent];
    parts_.devices.push_back(std::move(d));
  }
}

uint32_t Builder::end_of(const OpenLink& open) {
  const uint32_t host = devices_[open.from].host;
  for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::nvswitch, DeviceKind::pci_switch})
    if (const auto found =
            by_key_.find(fmt::format("{} at {} of {}", name(kind), to_text(open.to), host));
        found != by_key_.end())
      return found->second;
  return open.kind == DeviceKind::nvswitch
             ? see({.kind = open.kind, .host = host, .identity = {.bdf = open.to}})
             : kNoDevice;
}

// Sources that name addresses tell each end's links by themselves, so that a GPU may contradict
// its peer. Of a GPU for which no link is listed NCCL asks the driver.
void Builder::resolve_open_links() {
  std::map<Ends, Bdf> told;
  std::set<std::pair<uint32_t, LinkType>> list;  // those of which any is listed
  for (const auto& [ends, bundle] : links_) list.emplace(std::get<0>(ends), std::get<2>(ends));
  for (const OpenLink& open : open_links_) list.emplace(open.from, open.bundle.type);
  for (const OpenLink& open : open_links_) {
    const LinkType type = open.bundle.type;
    const uint32_t to = end_of(open);
    if (to == kNoDevice) {
      gap(open.from, fmt::format("{} to {}, which is not described", name(type), to_text(open.to)),
          "no such link", is_gpu_link(type) ? GapAbout::gpu_link : GapAbout::other);
      continue;
    }
    link(open.from, to, open.bundle);
    if (!is_gpu_link(type) || devices_[to].kind != DeviceKind::gpu) continue;
    if (open.kind == DeviceKind::gpu)
      told.emplace(Ends{open.from, to, type}, open.to);
    else
      gap(open.from,
          fmt::format("tells {} to {} as to an NVSwitch, where a GPU is; NCCL takes it for an "
                      "NVSwitch",
                      name(type), to_text(open.to)),
          "that GPU", GapAbout::gpu_link);
  }
  for (const auto& [ends, address] : told) {
    const auto [from, to, type] = ends;
    if (!told.contains(Ends{to, from, type}))
      gap(from,
          fmt::format("tells {} to {}, which tells none back; NCCL, told so, {}", name(type),
                      to_text(address),
                      list.contains({to, type}) ? "finds no path back and fails"
                                                : "asks the driver for that one's"),
          "that they go both ways", GapAbout::gpu_link);
  }
}

// A device whose NUMA node nobody told (numa_node −1 in sysfs) must not become an island.
void Builder::adopt_orphans() {
  auto nodes = of_kind(devices_, DeviceKind::numa);
  if (nodes.empty()) {
    nodes.push_back(see({.kind = DeviceKind::numa, .identity = {.number = 0}}));
    gap(nodes[0], "no NUMA node is described", "one that holds everything", GapAbout::numa_node);
  }
  for (uint32_t i = 0; i < devices_.size(); i++) {
    if (!on_pci(devices_[i].kind) || devices_[i].parent != kNoDevice) continue;
    devices_[i].parent = nodes[0];
    if (nodes.size() > 1) gap(i, "its NUMA node is not known", "the first", GapAbout::numa_node);
  }
}

// Network devices without a PCI function (bridges, tunnels) have no PCIe link, and partitions and
// virtual functions none of their own.
bool Builder::has_pcie_link(const Device& d) const {
  if (!on_pci(d.kind) || (d.kind == DeviceKind::nic && !d.identity.name.empty())) return false;
  return d.parent == kNoDevice || !is_part(d, devices_[d.parent]);
}

void Builder::assume_properties() {
  assume_gpu_kinds();
  for (uint32_t i = 0; i < devices_.size(); i++) {
    Device& d = devices_[i];
    if (has_pcie_link(d))
      assume_pcie(i);
    else if (d.pcie_speed.has_value() != d.pcie_lanes.has_value())
      forget_pcie(i);
    if (d.kind == DeviceKind::port && !d.line_rate) {
      gap(i, "its speed is not known", "10 Gb/s, as NCCL does", GapAbout::line_rate);
      d.line_rate = known(kAssumedLineRate, Provenance::assumed);
    }
  }
}

// What no driver told of a GPU follows from what it is; of a partition its GPU tells.
void Builder::assume_gpu_kinds() {
  std::optional<GpuKinds> kinds;
  for (uint32_t i = 0; i < devices_.size(); i++) {
    Device& d = devices_[i];
    if (d.kind != DeviceKind::gpu || d.compute_capability || !d.pci_ids) continue;
    if (!kinds) kinds.emplace();
    const GpuKinds::Kind* const kind = kinds->find(d.pci_ids->value);
    if (kind != nullptr)
      d.compute_capability = known(kind->compute_capability, Provenance::assumed);
  }
}

void Builder::assume_pcie(uint32_t index) {
  Device& d = devices_[index];
  if (!d.pcie_speed && !d.pcie_lanes)
    gap(index, "its PCIe speed and width are not known", "8 GT/s x16, as NCCL does",
        GapAbout::pcie_link);
  else if (!d.pcie_speed)
    gap(index, "its PCIe speed is not known", "8 GT/s, as NCCL does", GapAbout::pcie_link);
  else if (!d.pcie_lanes)
    gap(index, "its PCIe width is not known", "x16, as NCCL does", GapAbout::pcie_link);
  if (!d.pcie_speed) d.pcie_speed = known(kAssumedPcieSpeed, Provenance::assumed);
  if (!d.pcie_lanes) d.pcie_lanes = known(kAssumedPcieLanes, Provenance::assumed);
}

void Builder::forget_pcie(uint32_t index) {
  gap(index, "tells one of a PCIe link's speed and width, and has no such link of its own",
      "neither");
  devices_[index].pcie_speed.reset();
  devices_[index].pcie_lanes.reset();
}

// What a device reaches the rest of the host through.
Builder::Bundle Builder::bundle_to_parent(const Device& d) const {
  if (d.kind == DeviceKind::port) return {LinkType::net, 1, d.line_rate};
  if (!has_pcie_link(d)) return {LinkType::local, 1, known(kLocal, Provenance::assumed)};
  return {LinkType::pci, 1,
          known(pcie_bandwidth(d.pcie_speed->value, d.pcie_lanes->value),
                std::min(d.pcie_speed->from, d.pcie_lanes->from))};
}

void Builder::link_parents() {
  for (uint32_t i = 0; i < devices_.size(); i++) {
    const Device& d = devices_[i];
    if (d.kind == DeviceKind::port || on_pci(d.kind)) link(d.parent, i, bundle_to_parent(d));
  }
}

// A CPU that nobody described, or that the table does not know, is taken to be like the first
// that it does know.
void Builder::link_numa_nodes() {
  const auto nodes = of_kind(devices_, DeviceKind::numa);
  if (nodes.size() < 2) return;
  std::vector<std::optional<Bandwidth>> rates;
  for (const uint32_t node : nodes) {
    const auto& cpu = devices_[node].cpu;
    rates.push_back(cpu ? sys_bandwidth(cpu->value) : std::nullopt);
  }
  const auto known_one = std::ranges::find_if(rates, [](const auto& r) { return r.has_value(); });
  const Bandwidth otherwise = known_one == rates.end() ? kAssumedSysBandwidth : **known_one;
  for (size_t a = 0; a < nodes.size(); a++) {
    if (!rates[a])
      gap(nodes[a], "what joins its CPU to the others is not known", to_text(otherwise));
    for (size_t b = a + 1; b < nodes.size(); b++) {
      if (devices_[nodes[a]].host != devices_[nodes[b]].host) continue;
      const Bandwidth slower = std::min(rates[a].value_or(otherwise), rates[b].value_or(otherwise));
      link(nodes[a], nodes[b], {LinkType::sys, 1, known(slower, Provenance::assumed)});
    }
  }
}

// The slower end's rate. NCCL takes each way that of the GPU which it is told by.
Property<Bandwidth> Builder::nvlink_rate(uint32_t a, uint32_t b) {
  std::vector<Bandwidth> rates;
  for (const uint32_t end : {a, b})
    if (const auto& capability = devices_[end].compute_capability)
      rates.push_back(nvlink_bandwidth(capability->value));
  for (const uint32_t end : {a, b})
    if (rates.empty() && devices_[end].kind == DeviceKind::gpu)
      gap(end, "its generation of NVLink is not known", "20 GB/s a link");
  if (rates.empty()) rates.push_back(nvlink_bandwidth(0));
  if (rates.front() != rates.back())
    gap(a,
        fmt::format("its NVLinks carry {} each and those of its peer {}; NCCL counts each way with "
                    "the one that tells it",
                    to_text(rates.front()), to_text(rates.back())),
        "the slower, both ways", GapAbout::gpu_link);
  return known(std::ranges::min(rates), Provenance::assumed);
}

// The slower end's; a CPU, which GPUs may have xGMI to as well, takes what they have.
Property<Bandwidth> Builder::xgmi_rate(uint32_t a, uint32_t b) {
  std::vector<uint32_t> unknown;
  Bandwidth rate = kLocal;
  for (const uint32_t end : {a, b}) {
    if (devices_[end].kind != DeviceKind::gpu) continue;
    const auto gcn = devices_[end].attributes.find("gpu.gcn");
    const bool is_known = gcn != devices_[end].attributes.end();
    if (!is_known) unknown.push_back(end);
    rate = std::min(rate, xgmi_bandwidth(is_known ? gcn->second : ""));
  }
  if (rate == kLocal) return {};
  for (const uint32_t gpu : unknown)
    gap(gpu, "its generation of xgmi is not known",
        fmt::format("{} a link, as RCCL does", to_text(rate)));
  return known(rate, Provenance::assumed);
}

std::pair<uint32_t, Property<Bandwidth>> Builder::bundle_between(const Ends& ends,
                                                                 const Bundle& bundle) {
  const auto [from, to, type] = ends;
  const auto back = links_.find(Ends{to, from, type});
  uint32_t count = bundle.count;
  if (back != links_.end() && back->second.count != count) {
    gap(from,
        fmt::format("tells {} {} where the other end tells {}; NCCL counts each way with what one "
                    "end tells",
                    count, name(type), back->second.count),
        "the larger, both ways", is_gpu_link(type) ? GapAbout::gpu_link : GapAbout::other);
    count = std::max(count, back->second.count);
  }
  if (bundle.bandwidth) return {count, bundle.bandwidth};
  auto rate = type == LinkType::nvlink ? nvlink_rate(from, to)
              : type == LinkType::xgmi ? xgmi_rate(from, to)
                                       : Property<Bandwidth>{};
  if (rate) rate->value.bytes_per_second *= count;
  return {count, rate};
}

std::vector<Link> Builder::merge_link_ends() {
  std::vector<Link> out;
  for (const auto& [ends, bundle] : links_) {
    const auto [from, to, type] = ends;
    if (from > to && links_.contains(Ends{to, from, type})) continue;
    const auto [count, bandwidth] = bundle_between(ends, bundle);
    if (!bandwidth) gap(from, fmt::format("the speed of its {} is not known", name(type)));
    out.push_back({from, to, type, count, bandwidth});
  }
  return out;
}

std::vector<uint32_t> Builder::depth_first() const {
  std::vector<std::vector<uint32_t>> children(devices_.size());
  std::vector<uint32_t> order, waiting;
  for (uint32_t i = static_cast<uint32_t>(devices_.size()); i-- > 0;) {
    const uint32_t parent = devices_[i].parent;
    (parent == kNoDevice ? waiting : children[parent]).push_back(i);
  }
  while (!waiting.empty()) {
    const uint32_t next = waiting.back();
    waiting.pop_back();
    order.push_back(next);
    waiting.insert(waiting.end(), children[next].begin(), children[next].end());
  }
  return order;
}

void Builder::give_labels(const std::vector<uint32_t>& order) {
  std::map<DeviceKind, uint32_t> counters;
  std::map<std::string, uint32_t> copies;  // by label that is taken
  for (const uint32_t i : order) {
    Device& d = devices_[i];
    if (d.label.empty()) d.label = default_label(d, counters);
    const std::string wanted = d.label;
    while (!copies.emplace(d.label, 1).second)
      d.label = fmt::format("{}#{}", wanted, ++copies[wanted]);
  }
}

std::vector<Gap> Builder::close_gaps() {
  std::vector<Gap> out;
  std::set<std::tuple<std::string, std::string>> said;
  for (OpenGap& open : gaps_) {
    if (open.device != kNoDevice) open.gap.device = devices_[open.device].label;
    if (said.emplace(open.gap.device, open.gap.missing).second) out.push_back(std::move(open.gap));
  }
  return out;
}

}  // namespace crosstie
