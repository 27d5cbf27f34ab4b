// SPDX-License-Identifier: Apache-2.0
// A topology as people read it. An assumed number is marked with "~"; what is unsure is listed
// below the tree, one line for all devices of which the same is to be said.
#include <algorithm>
#include <map>
#include <set>

#include "base/printable.h"
#include "base/text.h"
#include "topology/format/formats.h"
#include "topology/format/mark.h"
#include "topology/host_names.h"
#include "topology/rails.h"

namespace crosstie {
namespace {

constexpr size_t kMostNamed = 4;       // of the devices of one gap, and of names that do not fold
constexpr size_t kLongestNames = 400;  // of a line, when folded

class Tree {
 public:
  explicit Tree(const Machine& machine)
      : machine_(machine), links_of_(machine.devices().size()), port_(machine.devices().size()) {
    if (paths_fit(machine)) rails_ = match_rails(machine);
    for (const Rails::Port& port : rails_.ports) port_[port.device] = &port;
    for (const Link& link : machine.links()) {
      links_of_[link.a].push_back(&link);
      links_of_[link.b].push_back(&link);
    }
  }

  std::string text() {
    std::string out;
    std::vector<int> depth(machine_.devices().size());
    for (uint32_t i = 0; i < depth.size(); i++) {
      const Device& d = machine_.devices()[i];
      depth[i] = d.parent == kNoDevice ? 1 : depth[d.parent] + 1;
      out += fmt::format("{:{}}{}\n", "", 2 * depth[i], printable(line(i)));
    }
    return out;
  }
  // Whether a rate in the text is marked as assumed.
  bool has_marks() const { return has_marks_; }

 private:
  std::string line(uint32_t i) {
    const Device& d = machine_.devices()[i];
    std::string out = d.label;
    if (d.identity.bdf) out += " " + to_text(*d.identity.bdf);
    if (d.model) out += " " + d.model->value;
    const Link* const up = link_to_parent(i);
    if (up != nullptr && up->type != LinkType::local)
      out += fmt::format("  {} {}", name(up->type), rate(*up));
    if (d.kind == DeviceKind::numa) out += sys_text(i);
    if (d.kind == DeviceKind::gpu) out += bundles_text(i);
    if (port_[i] != nullptr) out += rail_text(*port_[i]);
    return out;
  }

  // "  rail 0 of gpu0"
  std::string rail_text(const Rails::Port& port) const {
    if (!port.rail) return {};
    std::vector<std::string_view> gpus;
    for (const uint32_t gpu : port.gpus) gpus.push_back(machine_.devices()[gpu].label);
    const std::string_view of = gpus.empty() ? "" : " of ";
    return fmt::format("  rail {}{}{}", *port.rail, of, fmt::join(gpus, ", "));
  }

  std::string rate(const Link& link) {
    if (!link.bandwidth) return "?";
    has_marks_ |= !mark(*link.bandwidth).empty();
    return fmt::format("{}{}", mark(*link.bandwidth), to_text(link.bandwidth->value));
  }

  const Link* link_to_parent(uint32_t i) const {
    const uint32_t parent = machine_.devices()[i].parent;
    for (const Link* link : links_of_[i])
      if (link->a == parent && link->b == i) return link;
    return nullptr;
  }

  std::string sys_text(uint32_t i) {
    for (const Link* link : links_of_[i])
      if (link->type == LinkType::sys) return "  sys " + rate(*link);
    return {};
  }

  struct End {
    uint32_t device, links;
  };

  // What leaves a GPU beside PCIe, type by type: "  nvlink 18x ~371 GB/s (nvswitch0 5x, …)".
  std::string bundles_text(uint32_t i) {
    std::string out;
    for (const LinkType type : {LinkType::nvlink, LinkType::xgmi, LinkType::c2c})
      out += bundle_text(i, type);
    return out;
  }

  std::string bundle_text(uint32_t i, LinkType type) {
    Link all{.type = type, .count = 0};
    std::vector<End> ends;
    for (const Link* link : links_of_[i]) {
      if (link->type != type) continue;
      const uint32_t other = link->a == i ? link->b : link->a;
      ends.push_back({other, link->count});
      all.count += link->count;
      if (!link->bandwidth) continue;
      if (!all.bandwidth) all.bandwidth = known(Bandwidth{}, link->bandwidth->from);
      all.bandwidth->from = std::min(all.bandwidth->from, link->bandwidth->from);
      all.bandwidth->value.bytes_per_second += link->bandwidth->value.bytes_per_second;
    }
    if (ends.empty()) return {};
    return fmt::format("  {} {}x {} ({})", name(type), all.count, rate(all), ends_text(ends));
  }

  // "nvswitch0 5x, nvswitch1 4x", and of many in a row "nvswitch0 to nvswitch17 1x each".
  std::string ends_text(std::span<const End> ends) const {
    constexpr size_t kRow = 4;
    std::vector<std::string> out;
    const auto label = [&](const End& end) { return machine_.devices()[end.device].label; };
    while (!ends.empty()) {
      size_t row = 1;
      while (row < ends.size() && ends[row].device == ends[0].device + row &&
             ends[row].links == ends[0].links)
        row++;
      if (row < kRow) row = 1;
      out.push_back(row == 1 ? fmt::format("{} {}x", label(ends[0]), ends[0].links)
                             : fmt::format("{} to {} {}x each", label(ends[0]),
                                           label(ends[row - 1]), ends[0].links));
      ends = ends.subspan(row);
    }
    return fmt::format("{}", fmt::join(out, ", "));
  }

  const Machine& machine_;
  std::vector<std::vector<const Link*>> links_of_;
  Rails rails_;                           // none where the host is too large for paths
  std::vector<const Rails::Port*> port_;  // by device
  bool has_marks_ = false;
};

std::string counted(uint32_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string summary(const Machine& m) {
  std::string out = counted(m.count(DeviceKind::numa), "NUMA node", "NUMA nodes");
  out += ", " + counted(m.count(DeviceKind::gpu), "GPU", "GPUs");
  out += ", " + counted(m.count(DeviceKind::nic), "NIC", "NICs");
  if (const uint32_t switches = m.count(DeviceKind::nvswitch))
    out += ", " + counted(switches, "NVSwitch", "NVSwitches");
  return out;
}

// The devices of each thing that is unsure, in the order in which it was first met.
std::string gaps_text(std::span<const Gap> gaps) {
  std::vector<std::vector<std::string_view>> devices;
  std::vector<std::string> lines;
  std::map<std::string, size_t> known;
  for (const Gap& gap : gaps) {
    const auto [line, is_new] = known.emplace(gap.text(), lines.size());
    if (is_new) lines.push_back(gap.text()), devices.emplace_back();
    devices[line->second].push_back(gap.device);
  }
  std::string out = lines.empty() ? "" : "unsure:\n";
  for (size_t i = 0; i < lines.size(); i++)
    out += fmt::format("  {}\n", printable(some_of(devices[i], kMostNamed) + ": " + lines[i]));
  return out;
}

std::string names_text(std::vector<std::string_view> names) {
  std::string folded = fold_host_names(names);
  if (folded.size() <= kLongestNames || names.size() <= kMostNamed) return printable(folded);
  std::ranges::sort(names, NaturalOrder());
  return printable(some_of(names, kMostNamed));
}

std::string hosts_text(const Host& first, size_t count) {
  return count == 1 ? first.name : fmt::format("{}x {}", count, first.machine->name());
}

// The hosts of each domain.
std::string domains_text(const Topology& topology) {
  std::map<std::string_view, std::vector<std::string_view>, NaturalOrder> hosts;
  for (const Host& host : topology.hosts)
    if (!host.domain.empty()) hosts[host.domain].push_back(host.name);
  std::string out;
  for (auto& [domain, names] : hosts)
    out += fmt::format("NVLink domain {}: {}\n", printable(std::string(domain)),
                       names_text(std::move(names)));
  return out;
}

// The hosts that are cabled to each leaf switch; of those with the same hosts one line.
std::string leaves_text(const Topology& topology) {
  std::vector<std::vector<std::string_view>> hosts(topology.leaves.size());
  for (const Host& host : topology.hosts)
    for (const uint32_t leaf : std::set(host.leaves.begin(), host.leaves.end()))
      if (leaf != kNoLeaf) hosts[leaf].push_back(host.name);
  std::vector<std::vector<std::string_view>> hosts_of_line, lines;
  std::map<std::string, size_t> known;
  for (size_t leaf = 0; leaf < hosts.size(); leaf++) {
    const auto [at, is_new] = known.emplace(fold_host_names(hosts[leaf]), lines.size());
    if (is_new) hosts_of_line.push_back(hosts[leaf]), lines.emplace_back();
    lines[at->second].push_back(topology.leaves[leaf].name);
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); i++)
    out += fmt::format("leaf switch{} {}: {}\n", lines[i].size() == 1 ? "" : "es",
                       names_text(lines[i]),
                       hosts_of_line[i].empty() ? "no hosts" : names_text(hosts_of_line[i]));
  return out;
}

}  // namespace

std::string tree_text(const Topology& topology) {
  std::string out;
  bool has_marks = false;
  for (size_t i = 0, count = 0; i < topology.hosts.size(); i += count) {
    const Host& host = topology.hosts[i];
    for (count = 1; i + count < topology.hosts.size(); count++)
      if (topology.hosts[i + count].machine != host.machine) break;
    out += fmt::format("{}: {}{}\n", printable(hosts_text(host, count)), count == 1 ? "" : "each ",
                       summary(*host.machine));
    Tree tree(*host.machine);
    out += tree.text() + gaps_text(host.machine->gaps());
    has_marks |= tree.has_marks();
  }
  out += domains_text(topology) + leaves_text(topology) + gaps_text(topology.gaps);
  if (has_marks) out += kAssumedLegend;
  return out;
}

}  // namespace crosstie
