// SPDX-License-Identifier: Apache-2.0
// Recorded NCCL and RCCL files: what they hold, and that writing them again loses nothing that a
// path depends on. The counts were taken from the files by another program than the reader: by
// element, bus id and class. A link counts once, told by one end or both; xgmi and NVLink by lane.
#include <fmt/format.h>

#include <filesystem>

#include "machines.h"
#include "tap.h"
#include "topology/format/formats.h"
#include "topology/path.h"

namespace crosstie::test {
namespace {

namespace fs = std::filesystem;

struct Counts {
  uint32_t numa_nodes, gpus, switches, nics, ports, nvswitches, nvlinks, xgmi;
  bool operator==(const Counts&) const = default;
};
struct Row {
  const char* file;
  Counts counts;
};
constexpr Row kFiles[] = {
    // Bus ids alone: what its 9 functions are, it does not tell.
    {"aws-g5.48xl-topo.xml", {2, 0, 9, 0, 0, 0, 0, 0}},
    {"aws-p4d-24xl-topo.xml", {2, 8, 4, 4, 0, 0, 0, 0}},
    // Its 48 NVLinks name their own ends.
    {"azure-ncv4-topo.xml", {4, 4, 0, 1, 1, 0, 0, 0}},
    {"ibm-h100-vsi.xml", {2, 8, 8, 8, 8, 4, 144, 0}},
    {"lab-4x4090-epyc.xml", {4, 4, 0, 16, 16, 0, 0, 0}},
    {"lab-8xL20-bf3.xml", {2, 16, 12, 8, 8, 0, 0, 0}},
    // Its 4 NVLinks lead to a GPU that is not in it.
    {"lab-A6000-trimmed-mergednic.xml", {2, 1, 0, 1, 1, 0, 0, 0}},
    {"oci-H100-topology-kubernetes.xml", {2, 8, 24, 8, 16, 4, 144, 0}},
    {"oci-H100-topology.xml", {2, 8, 24, 8, 16, 4, 144, 0}},
    {"oci-topo-flattened-b4.xml", {4, 8, 4, 8, 0, 0, 0, 0}},
    {"oci-topo-flattened.xml", {4, 8, 4, 8, 0, 0, 0, 0}},
    {"rccl-topo_16p1h.xml", {4, 16, 28, 8, 8, 0, 0, 56}},
    {"rccl-topo_3p_pcie.xml", {2, 3, 3, 1, 1, 0, 0, 0}},
    {"rccl-topo_3p_pcie_1.xml", {2, 3, 3, 1, 1, 0, 0, 0}},
    {"rccl-topo_4p1h_1.xml", {2, 4, 4, 2, 2, 0, 0, 4}},
    {"rccl-topo_4p2h.xml", {1, 8, 10, 1, 1, 0, 0, 8}},
    {"rccl-topo_4p2h_1.xml", {1, 8, 10, 1, 1, 0, 0, 8}},
    {"rccl-topo_4p3l_n2.xml", {4, 8, 8, 1, 1, 0, 0, 12}},
    {"rccl-topo_4p3l_n2_1.xml", {4, 8, 8, 1, 1, 0, 0, 12}},
    {"rccl-topo_4p_940.xml", {4, 4, 0, 4, 4, 0, 0, 6}},
    {"rccl-topo_4p_942.xml", {4, 4, 0, 4, 4, 0, 0, 6}},
    {"rccl-topo_8p1h.xml", {2, 8, 14, 4, 4, 0, 0, 26}},
    // One bus id is a switch's and a NIC's.
    {"rccl-topo_8p1h_1.xml", {2, 8, 18, 4, 4, 0, 0, 26}},
    {"rccl-topo_8p1h_3.xml", {4, 8, 0, 4, 4, 0, 0, 26}},
    {"rccl-topo_8p1h_4.xml", {2, 8, 22, 8, 8, 0, 0, 26}},
    {"rccl-topo_8p1h_5.xml", {2, 8, 22, 8, 8, 0, 0, 26}},
    {"rccl-topo_8p6l.xml", {2, 8, 8, 1, 1, 0, 0, 24}},
    {"rccl-topo_8p6l_1nic.xml", {2, 8, 8, 1, 1, 0, 0, 24}},
    {"rccl-topo_8p_90a_1.xml", {3, 8, 0, 1, 1, 0, 0, 12}},
    {"rccl-topo_8p_pcie.xml", {1, 8, 10, 1, 1, 0, 0, 0}},
    {"rccl-topo_8p_pcie_2nic.xml", {1, 8, 10, 2, 2, 0, 0, 0}},
    {"rccl-topo_8p_rome.xml", {2, 8, 8, 1, 1, 0, 0, 8}},
    {"rccl-topo_8p_rome_4n_1.xml", {4, 8, 20, 4, 4, 0, 0, 12}},
    {"rccl-topo_8p_rome_4nics.xml", {4, 8, 20, 4, 4, 0, 0, 12}},
    {"rccl-topo_8p_rome_n2.xml", {4, 8, 8, 1, 1, 0, 0, 8}},
    {"rccl-topo_8p_rome_n2_2.xml", {4, 8, 8, 1, 2, 0, 0, 8}},
    {"rccl-topo_8p_rome_n4.xml", {7, 8, 8, 1, 1, 0, 0, 8}},
    {"rccl-topo_8p_ts1.xml", {4, 8, 8, 2, 2, 0, 0, 8}},
    {"rccl-topo_8p_ts1_1.xml", {4, 8, 8, 2, 2, 0, 0, 8}},
    {"rccl-topo_8p_ts1_n4_2.xml", {8, 8, 8, 2, 3, 0, 0, 8}},
    {"rccl-topo_collnet_n1.xml", {4, 8, 8, 1, 1, 0, 0, 12}},
    {"rccl-topo_collnet_n4.xml", {4, 8, 20, 4, 4, 0, 0, 12}},
    {"uccl-p4d.xml", {2, 8, 4, 4, 0, 0, 0, 0}},
};

uint32_t lanes(const Machine& m, LinkType type) {
  uint32_t count = 0;
  for (const Link& link : m.links())
    if (link.type == type) count += link.count;
  return count;
}

Counts counts_of(const Machine& m) {
  return {m.count(DeviceKind::numa),  m.count(DeviceKind::gpu),  m.count(DeviceKind::pci_switch),
          m.count(DeviceKind::nic),   m.count(DeviceKind::port), m.count(DeviceKind::nvswitch),
          lanes(m, LinkType::nvlink), lanes(m, LinkType::xgmi)};
}

std::string to_text(const Counts& c) {
  return fmt::format("{} {} {} {} {} {} {} {}", c.numa_nodes, c.gpus, c.switches, c.nics, c.ports,
                     c.nvswitches, c.nvlinks, c.xgmi);
}

// What differs between the paths of two machines with the same devices; empty: nothing.
std::string compare(const Machine& a, const Machine& b, Paths::View view) {
  if (a.devices().size() != b.devices().size()) return "not as many devices";
  const Paths first(a, view), second(b, view);
  for (uint32_t from = 0; from < a.devices().size(); from++)
    for (uint32_t to = 0; to < a.devices().size(); to++)
      if (first.between(from, to) != second.between(from, to) ||
          first.route(from, to) != second.route(from, to))
        return fmt::format("another path from {} to {}", a.devices()[from].label,
                           b.devices()[to].label);
  return {};
}

std::string round_trip(const Topology& topology) {
  const auto text = nccl_xml_text(topology);
  if (!text) return text.error().text;
  const auto again = read_nccl_xml(*text, "written");
  if (!again) return again.error().text;
  if (again->hosts.size() != topology.hosts.size()) return "another number of hosts";
  const Machine &a = *topology.hosts[0].machine, &b = *again->hosts[0].machine;
  if (counts_of(a) != counts_of(b)) return "other counts: " + to_text(counts_of(b));
  for (uint32_t i = 0; i < a.devices().size(); i++)
    if (a.devices()[i].label != b.devices()[i].label ||
        a.devices()[i].attributes != b.devices()[i].attributes)
      return fmt::format("{} became {}", a.devices()[i].label, b.devices()[i].label);
  if (nccl_xml_text(*again) != *text) return "another text when written again";
  return compare(a, b, Paths::View::physical) + compare(a, b, Paths::View::nccl);
}

int main(const fs::path& data) {
  if (!fs::exists(data)) {
    fmt::print("1..0 # SKIP no recorded machines in {}\n", data.string());
    return 0;
  }
  Tap tap;
  for (const Row& row : kFiles) {
    const auto read = read_topology_file(data / row.file);
    if (!read) {
      tap.check(false, fmt::format("{} is read", row.file), read.error().text);
      continue;
    }
    const Counts found = counts_of(*read->hosts[0].machine);
    tap.check(read->hosts.size() == 1 && found == row.counts,
              fmt::format("{} has what was counted in it", row.file),
              fmt::format("{}, found {}", to_text(row.counts), to_text(found)));
    const std::string wrong = round_trip(*read);
    tap.check(wrong.empty(), fmt::format("{} has the same paths when written and read", row.file),
              wrong);
  }
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(crosstie::test::recorded()); }
