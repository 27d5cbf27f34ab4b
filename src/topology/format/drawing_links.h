// SPDX-License-Identifier: Apache-2.0
// The links of a drawn host: how their lines look, and what stands where many meet.
#pragma once
#include <vector>

#include "topology/format/drawing_dot.h"
#include "topology/machine.h"

namespace crosstie {

// Which node of the drawing shows which device: a NIC's shows its ports, a GPU's its partitions,
// one all NVSwitches, one all network devices of a NUMA node that are made of software.
struct DrawnNodes {
  DrawnNodes(const Machine& of, std::string beginning);

  std::string id(uint32_t device) const;
  // The devices of a node, the one that names it first.
  const std::vector<uint32_t>& shown_at(uint32_t device) const { return shown[node[device]]; }

  const Machine& machine;
  std::string prefix;
  std::vector<uint32_t> node;                // by device: the one that names the node
  std::vector<std::vector<uint32_t>> shown;  // by device that names a node
};

// Attributes of an edge. A line whose label is assumed is dashed.
std::string line_look(LinkType type, std::string_view label, bool assumed);
std::string line_look(const Machine& machine, const Link& link);

// NVLink and its like between GPUs: through NVSwitches, all to all, or as a table of who has how
// many to whom.
void draw_gpu_links(dot::Writer& out, const DrawnNodes& nodes);
bool joins_gpus(const Machine& machine, const Link& link);

// What joins a host's CPUs, if anything.
void draw_cpu_links(dot::Writer& out, const DrawnNodes& nodes, uint32_t host);

}  // namespace crosstie
