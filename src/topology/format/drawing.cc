// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing.h"

#include <set>

#include "topology/format/drawing_cluster.h"
#include "topology/rails.h"

namespace crosstie {
namespace {

constexpr std::string_view kFont = "Helvetica,Arial,sans-serif";
constexpr size_t kMostRailsInLegend = 18;

using Kinds = std::vector<std::vector<const Host*>>;

// Hosts by kind, in the order of their first.
Kinds kinds_of_host(const Topology& topology) {
  Kinds out;
  std::map<const Machine*, size_t> known;
  for (const Host& host : topology.hosts) {
    const auto [at, is_new] = known.emplace(host.machine.get(), out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(&host);
  }
  return out;
}

PortRails match_ports(const Machine& machine) {
  PortRails out(machine.devices().size());
  for (const Rails::Port& port : match_rails(machine).ports) out[port.device] = port.rail;
  return out;
}

std::string legend(const RailsOf& rails_of, std::string_view lines) {
  std::set<uint32_t> rails;
  for (const auto& [machine, ports] : rails_of)
    for (const auto& rail : ports)
      if (rail) rails.insert(*rail);
  std::string cells;
  if (rails.size() <= kMostRailsInLegend)
    for (const uint32_t rail : rails) cells += dot::rail_cell(rail, " BORDER=\"1\"");
  return fmt::format(
      "label=<<TABLE BORDER=\"0\" CELLSPACING=\"3\"><TR>{}<TD>{}</TD></TR></TABLE>> fontsize=10",
      cells, dot::html(lines));
}

void draw_kinds(dot::Writer& out, const Kinds& kinds, const RailsOf& rails_of) {
  out.line("graph [rankdir=LR]");
  out.line(legend(rails_of,
                  "thin lines: PCIe; thick: NVLink, xGMI, C2C, their number; rates one way; "
                  "~ and dashed lines: assumed"));
  for (size_t i = 0; i < kinds.size(); i++) {
    const Machine& machine = *kinds[i][0]->machine;
    MachineDrawing(out, machine, rails_of.at(&machine),
                   kinds.size() == 1 ? "" : fmt::format("m{}", i))
        .draw(title_of(kinds[i]));
  }
}

}  // namespace

std::string dot_text(const Topology& topology) {
  dot::Writer out;
  out.open("graph topology");
  out.line(fmt::format("graph [fontname=\"{}\" nodesep=0.12 ranksep=0.25 labeljust=l]", kFont));
  out.line(
      fmt::format("node [shape=box style=\"filled,rounded\" fontname=\"{}\" fontsize=11 "
                  "height=0.3 margin=\"0.08,0.04\"]",
                  kFont));
  out.line(fmt::format("edge [fontname=\"{}\" fontsize=9]", kFont));
  const auto kinds = kinds_of_host(topology);
  RailsOf rails_of;
  for (const auto& hosts : kinds) {
    const Machine& machine = *hosts[0]->machine;
    rails_of.emplace(&machine, match_ports(machine));
  }
  if (topology.leaves.empty()) {
    draw_kinds(out, kinds, rails_of);
  } else {
    out.line("graph [nodesep=0.3 ranksep=2 splines=line]");
    out.line(
        legend(rails_of, "cables between hosts and leaf switches in the colour of their rail"));
    draw_cluster(out, topology, rails_of);
  }
  out.close();
  return out.text();
}

}  // namespace crosstie
