// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing.h"

#include <algorithm>

#include "topology/format/drawing_machine.h"

namespace crosstie {
namespace {

constexpr std::string_view kFont = "Helvetica,Arial,sans-serif";

std::string titled(const Topology& topology, const Machine* machine) {
  const auto of_kind = [&](const Host& host) { return host.machine.get() == machine; };
  const auto count = std::ranges::count_if(topology.hosts, of_kind);
  if (count > 1) return fmt::format("{}x {}", count, machine->name());
  return std::ranges::find_if(topology.hosts, of_kind)->name;
}

std::vector<const Machine*> kinds_of_host(const Topology& topology) {
  std::vector<const Machine*> out;
  for (const Host& host : topology.hosts)
    if (std::ranges::find(out, host.machine.get()) == out.end()) out.push_back(host.machine.get());
  return out;
}

}  // namespace

PortRails rails_of(const Machine& machine) {
  PortRails out(machine.devices().size());
  uint32_t next = 0;
  for (size_t i = 0; i < out.size(); i++)
    if (machine.devices()[i].kind == DeviceKind::port) out[i] = next++;
  return out;
}

std::string dot_text(const Topology& topology) {
  dot::Writer out;
  out.open("graph topology");
  out.line(fmt::format("graph [rankdir=LR fontname=\"{0}\" nodesep=0.12 ranksep=0.25 labeljust=l]",
                       kFont));
  out.line(
      fmt::format("node [shape=box style=\"filled,rounded\" fontname=\"{0}\" fontsize=11 "
                  "height=0.3 margin=\"0.08,0.04\"]",
                  kFont));
  out.line(fmt::format("edge [fontname=\"{0}\" fontsize=9]", kFont));
  size_t number = 0;
  for (const Machine* machine : kinds_of_host(topology))
    MachineDrawing(out, *machine, fmt::format("m{}", number++)).draw(titled(topology, machine));
  out.close();
  return out.text();
}

}  // namespace crosstie
