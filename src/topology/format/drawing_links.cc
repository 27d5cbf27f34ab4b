// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "topology/format/mark.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

using dot::bold;
using dot::small;

constexpr std::string_view kSwitchFill = "#fff4cc";

// Made of software, as bridges and tunnels.
std::vector<bool> soft_nics(const Machine& machine) {
  std::vector<bool> out(machine.devices().size());
  for (const Link& link : machine.links())
    out[link.b] = out[link.b] || (link.type == LinkType::local &&
                                  machine.devices()[link.b].kind == DeviceKind::nic);
  return out;
}

std::string_view type_text(LinkType type) {
  switch (type) {
    case LinkType::nvlink:
      return "NVLink";
    case LinkType::xgmi:
      return "xGMI";
    case LinkType::c2c:
      return "C2C";
    default:
      return name(type);
  }
}

std::string rate_text(const Property<Bandwidth>& rate) {
  if (!rate) return "speed unknown";
  return fmt::format("{}{}", mark(*rate), to_text(rate->value));
}

// Links that are drawn as one.
struct Bundle {
  uint32_t count = 0;
  Property<Bandwidth> bandwidth = known(Bandwidth{}, Provenance::measured);
  auto operator<=>(const Bundle&) const = default;

  void add(const Link& link) {
    count += link.count;
    if (!bandwidth || !link.bandwidth) {
      bandwidth.reset();
    } else {
      bandwidth->value.bytes_per_second += link.bandwidth->value.bytes_per_second;
      bandwidth->from = std::min(bandwidth->from, link.bandwidth->from);
    }
  }
};

std::string generation_text(double gigatransfers, int lanes) {
  constexpr std::array kGenerations = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0};
  const auto found = std::ranges::find(kGenerations, gigatransfers);
  if (found == kGenerations.end()) return pcie_text(gigatransfers, lanes);
  return fmt::format("Gen{} x{}", found - kGenerations.begin() + 1, lanes);
}

std::string link_text(const Device& below) {
  const auto &speed = below.pcie_speed, &speed_now = below.pcie_speed_now;
  const auto &lanes = below.pcie_lanes, &lanes_now = below.pcie_lanes_now;
  const std::string able = generation_text(speed->value, lanes->value);
  const std::string now = generation_text((speed_now ? speed_now : speed)->value,
                                          (lanes_now ? lanes_now : lanes)->value);
  return now == able ? able : fmt::format("{} of {}", now, able);
}

// GPUs that have links to one another, straight or by way of others of them.
struct Mesh {
  std::set<uint32_t> gpus;
  std::map<std::pair<uint32_t, uint32_t>, Bundle> between;  // the earlier GPU first

  bool is_even() const {
    const size_t pairs = gpus.size() * (gpus.size() - 1) / 2;
    return between.size() == pairs && std::ranges::all_of(between, [&](const auto& entry) {
             return entry.second == between.begin()->second;
           });
  }
};

class GpuLinks {
 public:
  GpuLinks(dot::Writer& out, const DrawnNodes& nodes) : out_(out), nodes_(nodes) {
    for (const Link& link : nodes.machine.links()) {
      if (!joins_gpus(nodes.machine, link)) continue;
      const uint32_t a = nodes.node[link.a], b = nodes.node[link.b];
      if (a == b) continue;
      if (kind(a) == DeviceKind::gpu && kind(b) == DeviceKind::gpu)
        add_to_mesh(link, a, b);
      else
        add_to_switches(link);
    }
  }

  void draw() const {
    if (!to_switches_.empty()) draw_switches();
    for (const auto& [first, mesh] : meshes()) mesh.is_even() ? draw_even(mesh) : draw_table(mesh);
  }

 private:
  DeviceKind kind(uint32_t i) const { return nodes_.machine.devices()[i].kind; }
  const std::string& label(uint32_t i) const { return nodes_.machine.devices()[i].label; }

  void add_to_switches(const Link& link) {
    const bool a_is_gpu = kind(link.a) == DeviceKind::gpu;
    const uint32_t gpu = nodes_.node[a_is_gpu ? link.a : link.b];
    to_switches_[gpu].add(link);
    by_switch_[a_is_gpu ? link.b : link.a][gpu] += link.count;
  }

  void add_to_mesh(const Link& link, uint32_t a, uint32_t b) {
    between_[std::minmax(a, b)].add(link);
    type_ = link.type;
    const auto [low, high] = std::minmax({first_of_mesh(a), first_of_mesh(b)});
    earlier_[high] = low;
  }

  // A GPU's mesh is known by its first GPU.
  uint32_t first_of_mesh(uint32_t gpu) const {
    for (auto found = earlier_.find(gpu); found != earlier_.end() && found->second != gpu;
         found = earlier_.find(gpu))
      gpu = found->second;
    return gpu;
  }

  std::map<uint32_t, Mesh> meshes() const {
    std::map<uint32_t, Mesh> out;
    for (const auto& [pair, bundle] : between_) {
      Mesh& mesh = out[first_of_mesh(pair.first)];
      mesh.between.emplace(pair, bundle);
      mesh.gpus.insert({pair.first, pair.second});
    }
    return out;
  }

  // One box: every GPU reaches all NVSwitches, and NCCL too takes them for one.
  void draw_switches() const {
    const uint32_t first = by_switch_.begin()->first;
    std::string rows = fmt::format("<TR><TD>{}{}</TD></TR>", bold("NVSwitch"), links_of_each_gpu());
    for (const uint32_t chip : nodes_.shown_at(first)) rows += switch_row(chip);
    out_.table(nodes_.id(first), rows, kSwitchFill);
    for (const auto& [gpu, bundle] : to_switches_ | std::views::reverse)
      edge(nodes_.id(gpu), nodes_.id(first), LinkType::nvlink, fmt::format("{}x", bundle.count));
  }

  // What holds of all GPUs; what does not stands at their lines.
  std::string links_of_each_gpu() const {
    const Bundle& bundle = to_switches_.begin()->second;
    const bool even =
        std::ranges::all_of(to_switches_, [&](const auto& e) { return e.second == bundle; });
    if (!even) return {};
    return "<BR/>" + small(fmt::format("{}x {} a GPU", bundle.count, rate_text(bundle.bandwidth)));
  }

  std::string switch_row(uint32_t chip) const {
    const Device& d = nodes_.machine.devices()[chip];
    std::string text = d.label;
    if (d.identity.bdf) text += " " + to_text(*d.identity.bdf);
    if (const auto links = by_switch_.find(chip); links != by_switch_.end()) {
      std::set<uint32_t> counts;
      for (const auto& [gpu, count] : links->second) counts.insert(count);
      if (counts.size() == 1) text += fmt::format(" ({}x each)", *counts.begin());
    }
    return fmt::format("<TR><TD>{}</TD></TR>", small(text));
  }

  void draw_even(const Mesh& mesh) const {
    const Bundle& bundle = mesh.between.begin()->second;
    const bool pair = mesh.gpus.size() == 2;
    const std::string id = "mesh_" + nodes_.id(*mesh.gpus.begin());
    out_.box(id,
             fmt::format("{}<BR/>{}",
                         bold(fmt::format("{}{}", type_text(type_), pair ? "" : " all to all")),
                         small(fmt::format("{}x {}{}", bundle.count, rate_text(bundle.bandwidth),
                                           pair ? "" : " a pair"))),
             "white", " color=\"transparent\"");
    for (const uint32_t gpu : mesh.gpus | std::views::reverse)
      edge(nodes_.id(gpu), id, type_,
           pair ? "" : fmt::format("{}x", bundle.count * (mesh.gpus.size() - 1)));
  }

  void draw_table(const Mesh& mesh) const {
    std::string rows = fmt::format("<TR><TD>{}</TD>", bold(type_text(type_)));
    for (const uint32_t gpu : mesh.gpus) rows += fmt::format("<TD>{}</TD>", small(label(gpu)));
    rows += "</TR>";
    for (const uint32_t gpu : mesh.gpus) rows += table_row(mesh, gpu);
    const std::string id = "mesh_" + nodes_.id(*mesh.gpus.begin());
    out_.table(id, rows, "white");
    for (const uint32_t gpu : mesh.gpus | std::views::reverse)
      edge(nodes_.id(gpu), fmt::format("{}:{}:w", id, nodes_.id(gpu)), type_, "");
  }

  std::string table_row(const Mesh& mesh, uint32_t gpu) const {
    std::string row = fmt::format("<TR><TD PORT=\"{}\">{}</TD>", nodes_.id(gpu), small(label(gpu)));
    for (const uint32_t peer : mesh.gpus) {
      const auto found = mesh.between.find(std::minmax(gpu, peer));
      row += found == mesh.between.end() ? "<TD></TD>"
                                         : fmt::format("<TD>{}x</TD>", found->second.count);
    }
    return row + "</TR>";
  }

  void edge(const std::string& from, const std::string& to, LinkType type,
            std::string_view label) const {
    out_.line(fmt::format("{}:e -- {} [{}]", from, to, line_look(type, label, false)));
  }

  dot::Writer& out_;
  const DrawnNodes& nodes_;
  std::map<uint32_t, Bundle> to_switches_;                      // by GPU
  std::map<uint32_t, std::map<uint32_t, uint32_t>> by_switch_;  // links by chip and GPU
  std::map<std::pair<uint32_t, uint32_t>, Bundle> between_;     // GPUs, the earlier one first
  std::map<uint32_t, uint32_t> earlier_;                        // by GPU: another of its mesh
  LinkType type_ = LinkType::nvlink;                            // of those between GPUs
};

}  // namespace

DrawnNodes::DrawnNodes(const Machine& of, std::string beginning)
    : machine(of), prefix(std::move(beginning)), shown(of.devices().size()) {
  uint32_t nvswitch = kNoDevice;
  const auto soft = soft_nics(of);
  std::map<uint32_t, uint32_t> soft_of;  // by parent, the first
  for (uint32_t i = 0; i < of.devices().size(); i++) {
    const Device& d = of.devices()[i];
    uint32_t at = i;
    if (d.kind == DeviceKind::port) at = node[d.parent];
    if (d.kind == DeviceKind::gpu && of.devices()[d.parent].kind == DeviceKind::gpu)
      at = node[d.parent];
    if (d.kind == DeviceKind::nvswitch) at = nvswitch = std::min(nvswitch, i);
    if (soft[i]) at = soft_of.emplace(d.parent, i).first->second;
    node.push_back(at);
    shown[at].push_back(i);
  }
}

std::string DrawnNodes::id(uint32_t device) const {
  return fmt::format("{}n{}", prefix, node[device]);
}

std::string line_look(LinkType type, std::string_view label, bool assumed) {
  std::string out = is_gpu_link(type)         ? "color=\"#222222\" penwidth=2.5"
                    : type == LinkType::sys ? "color=\"#8899aa\" penwidth=2.5"
                                            : "color=\"#666666\"";
  if (!label.empty()) out += fmt::format(" label={}", dot::quoted(label));
  if (assumed) out += " style=dashed";
  return out;
}

std::string line_look(const Machine& machine, const Link& link) {
  const Device& below = machine.devices()[link.b];
  const bool assumed = !is_told(link.bandwidth);
  if (link.type == LinkType::local) return line_look(link.type, "", false);
  if (link.type != LinkType::pci)
    return line_look(
        link.type,
        fmt::format("{} {}x {}", type_text(link.type), link.count, rate_text(link.bandwidth)),
        false);
  if (!below.pcie_speed || !below.pcie_lanes)
    return line_look(link.type, rate_text(link.bandwidth), assumed);
  std::string text = link_text(below);
  // What an emulated bridge tells is not what it carries.
  const bool disbelieved = assumed && is_told(below.pcie_speed) && is_told(below.pcie_lanes);
  if (disbelieved)
    text = fmt::format("{}, told {}", rate_text(link.bandwidth), text);
  else if (assumed)
    text.insert(0, kAssumedMark);
  return line_look(link.type, text, assumed);
}

bool joins_gpus(const Machine& machine, const Link& link) {
  const auto of_gpus = [&](uint32_t i) {
    const DeviceKind kind = machine.devices()[i].kind;
    return kind == DeviceKind::gpu || kind == DeviceKind::nvswitch;
  };
  return of_gpus(link.a) && of_gpus(link.b);
}

void draw_gpu_links(dot::Writer& out, const DrawnNodes& nodes) { GpuLinks(out, nodes).draw(); }

void draw_cpu_links(dot::Writer& out, const DrawnNodes& nodes, uint32_t host) {
  Bandwidth least{}, most{};
  bool assumed = false;
  std::set<uint32_t> ends;
  for (const Link& link : nodes.machine.links()) {
    if (link.type != LinkType::sys || nodes.machine.devices()[link.a].host != host) continue;
    const Bandwidth rate = link.bandwidth ? link.bandwidth->value : Bandwidth{};
    least = ends.empty() ? rate : std::min(least, rate);
    most = std::max(most, rate);
    assumed |= !is_told(link.bandwidth);
    ends.insert({link.a, link.b});
  }
  if (ends.empty()) return;
  const std::string id = fmt::format("{}sys{}", nodes.prefix, host);
  const std::string range =
      least == most ? to_text(most) : fmt::format("{} to {}", to_text(least), to_text(most));
  out.box(id,
          fmt::format("{}<BR/>{}", bold("between CPUs"),
                      small((assumed ? std::string(kAssumedMark) : "") + range)),
          "white", " color=\"transparent\"");
  for (const uint32_t numa : ends | std::views::reverse)
    out.line(
        fmt::format("{} -- {} [{}]", id, nodes.id(numa), line_look(LinkType::sys, "", assumed)));
}

}  // namespace crosstie
