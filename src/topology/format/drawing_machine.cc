// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "topology/rails.h"

namespace crosstie {
namespace {

using dot::bold;
using dot::html;
using dot::small;

constexpr std::string_view kNumaFill = "#e4ebf2";
constexpr std::string_view kPciSwitchFill = "#eeeeee";
constexpr std::string_view kGpuFill = "#e3f1dc";
constexpr std::string_view kNicFill = "white";

// The words that are there, as one small line below a name.
std::string below_name(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words)
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? text : "<BR/>" + small(text);
}

std::string model_of(const Device& d) { return d.model ? d.model->value : std::string(); }
std::string bdf_of(const Device& d) { return d.identity.bdf ? to_text(*d.identity.bdf) : ""; }

// All that identifies a device, shown by a browser where the pointer rests on it.
std::string tooltip(const Device& d) {
  std::string text = d.label;
  for (const std::string& more : {model_of(d), bdf_of(d), d.identity.uuid})
    if (!more.empty()) text += ", " + more;
  return fmt::format(" tooltip={}", dot::quoted(text));
}

}  // namespace

MachineDrawing::MachineDrawing(dot::Writer& out, const Machine& machine, const PortRails& rails,
                               std::string prefix)
    : out_(out),
      nodes_(machine, std::move(prefix)),
      rails_(rails),
      within_(machine.devices().size()) {
  for (uint32_t i = 0; i < machine.devices().size(); i++)
    if (const uint32_t parent = device(i).parent; parent != kNoDevice) within_[parent].push_back(i);
  give_columns();
}

void MachineDrawing::give_columns() {
  for (uint32_t i = 0; i < within_.size(); i++) {
    const uint32_t parent = device(i).parent;
    const bool contained = parent != kNoDevice && device(parent).kind != DeviceKind::cpu;
    column_.push_back(contained ? column_[parent] + 1 : 0);
    if (is_end(i) && nodes_.node[i] == i) last_column_ = std::max(last_column_, column_[i]);
  }
}

void MachineDrawing::draw(std::string_view title) const {
  out_.open(fmt::format("subgraph cluster_{}machine", nodes_.prefix));
  out_.line(fmt::format("label=<{}> fontsize=14 color=\"#888888\"", bold(title)));
  const uint32_t hosts = nodes_.machine.host_count();
  for (uint32_t host = 0; host < hosts; host++) {
    if (hosts > 1) {
      out_.open(fmt::format("subgraph cluster_{}host{}", nodes_.prefix, host));
      out_.line(fmt::format("label=<{}> color=\"#888888\"", bold(fmt::format("host {}", host))));
    }
    draw_host(host);
    if (hosts > 1) out_.close();
  }
  draw_gpu_links(out_, nodes_);
  out_.close();
  for (const Link& link : nodes_.machine.links()) draw_link(link);
}

// A GPU or NIC with nothing behind it.
bool MachineDrawing::is_end(uint32_t index) const {
  const DeviceKind kind = device(index).kind;
  return (kind == DeviceKind::gpu || kind == DeviceKind::nic) &&
         std::ranges::none_of(within_[index], [&](uint32_t i) { return nodes_.node[i] == i; });
}

void MachineDrawing::draw_host(uint32_t host) const {
  for (uint32_t i = static_cast<uint32_t>(within_.size()); i-- > 0;) {
    const Device& d = device(i);
    if (d.host != host || d.parent != kNoDevice) continue;
    if (d.kind == DeviceKind::cpu) draw_package(i);
    if (d.kind == DeviceKind::numa) draw_numa(i, true);
  }
  draw_cpu_links(out_, nodes_, host);
}

void MachineDrawing::draw_package(uint32_t cpu) const {
  const Device& d = device(cpu);
  out_.open(fmt::format("subgraph cluster_{}", nodes_.id(cpu)));
  out_.line(fmt::format("label=<{} {}> color=\"#7788aa\"", bold(d.label), html(model_of(d))));
  if (within_[cpu].empty()) out_.box(nodes_.id(cpu), "no NUMA node", kNumaFill);
  for (const uint32_t numa : within_[cpu] | std::views::reverse)
    draw_numa(numa, within_[cpu].size() > 1);
  out_.close();
}

void MachineDrawing::draw_numa(uint32_t numa, bool boxed) const {
  boxed = boxed && !within_[numa].empty();
  if (boxed) {
    out_.open(fmt::format("subgraph cluster_{}", nodes_.id(numa)));
    out_.line("label=\"\" color=\"#aabbcc\"");
  }
  out_.box(nodes_.id(numa), bold(device(numa).label), kNumaFill, tooltip(device(numa)));
  draw_within(numa);
  if (boxed) out_.close();
}

void MachineDrawing::draw_within(uint32_t parent) const {
  for (const uint32_t i : within_[parent] | std::views::reverse) {
    if (nodes_.node[i] == i) draw_device(i);
    draw_within(i);
  }
}

void MachineDrawing::draw_device(uint32_t index) const {
  const Device& d = device(index);
  if (d.kind == DeviceKind::gpu) draw_gpu(index);
  if (d.kind == DeviceKind::nic) draw_nic(index);
  if (d.kind == DeviceKind::pci_switch)
    out_.box(nodes_.id(index), html(d.label) + below_name({model_of(d), bdf_of(d)}), kPciSwitchFill,
             tooltip(d));
}

void MachineDrawing::draw_gpu(uint32_t gpu) const {
  const Device& d = device(gpu);
  std::string label = bold(d.label) + below_name({model_of(d), bdf_of(d)});
  for (const uint32_t part : nodes_.shown_at(gpu))
    if (part != gpu) label += below_name({device(part).label, model_of(device(part))});
  out_.box(nodes_.id(gpu), label, kGpuFill, tooltip(d));
}

// A NIC of one port is called what the port is called.
void MachineDrawing::draw_nic(uint32_t nic) const {
  std::vector<uint32_t> ports;
  for (const uint32_t i : nodes_.shown_at(nic))
    if (device(i).kind == DeviceKind::port) ports.push_back(i);
  const Device& d = device(nic);
  const bool soft = nodes_.shown_at(nic).size() > ports.size() + 1;
  std::string rows;
  if (ports.size() != 1)
    rows = fmt::format("<TR><TD COLSPAN=\"2\">{}{}</TD></TR>",
                       bold(soft ? "no PCI function" : d.label),
                       below_name({soft ? "" : model_of(d), bdf_of(d)}));
  for (const uint32_t port : ports) rows += port_row(port);
  out_.table(nodes_.id(nic), rows, kNicFill, tooltip(d));
}

std::string MachineDrawing::port_row(uint32_t port) const {
  const Device& d = device(port);
  const Device& nic = device(d.parent);
  const bool alone = nodes_.shown_at(d.parent).size() == 2;
  std::string text = fmt::format("{} {}", bold(d.label), html(dot::line_rate_text(d)));
  if (has_no_carrier(d)) text += " " + bold("no carrier");
  if (alone) text += below_name({nic.label, model_of(nic), bdf_of(nic)});
  if (!rails_[port])
    return fmt::format("<TR><TD COLSPAN=\"2\" PORT=\"p{}\">{}</TD></TR>", port, text);
  return fmt::format("<TR><TD>{}</TD>{}</TR>", text,
                     dot::rail_cell(*rails_[port], fmt::format(" PORT=\"p{}\"", port)));
}

void MachineDrawing::draw_link(const Link& link) const {
  const Machine& m = nodes_.machine;
  if (link.type == LinkType::sys || joins_gpus(m, link) ||
      nodes_.node[link.a] == nodes_.node[link.b])
    return;
  if (nodes_.node[link.b] != link.b) return;  // a further device of one box
  std::string look = line_look(m, link);
  if (is_end(link.b) && column_[link.b] < last_column_)
    look += fmt::format(" minlen={}", last_column_ - column_[link.b] + 1);
  out_.line(fmt::format("{} -- {} [{}]", nodes_.id(link.a), nodes_.id(link.b), look));
}

}  // namespace crosstie
