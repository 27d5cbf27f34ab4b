// SPDX-License-Identifier: Apache-2.0
// Topologies of real machines as hwloc wrote them, with what was counted in them by hand.
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "machines.h"
#include "tap.h"
#include "topology/format/formats.h"
#include "topology/path.h"

namespace crosstie::test {
namespace {

struct Row {
  std::string_view file;
  uint32_t numa, gpus, nics, ports, nvlinks, xgmi;
};

// NICs: functions of class 02xx and 0c06, without the 12 virtual ones of the Cisco cards. GPUs:
// those of NVIDIA and AMD but for the HP server's console, or their partitions. Links: sums of half
// the matrices, 20 GB/s an NVLink of a P100, 50 GB/s an XGMI, between GPUs and not partitions.
constexpr std::array<Row, 14> kRows = {{
    {"fluxcore-tuo-CPX.xml", 4, 24, 5, 5, 0, 12},
    {"fluxcore-tuo-TPX.xml", 4, 12, 5, 5, 0, 12},
    {"hwloc-16intel64-manyVFs.xml", 2, 0, 6, 6, 0, 0},
    {"hwloc-24em64t-2n6c2t-pci.xml", 2, 3, 3, 3, 0, 0},
    {"hwloc-power8gpudistances.xml", 2, 4, 0, 0, 12, 0},
    {"mpibind-coral-ea-hwloc1.xml", 2, 4, 4, 4, 0, 0},
    {"mpibind-coral-lassen.xml", 2, 4, 6, 6, 0, 0},
    {"mpibind-epyc-corona.xml", 8, 4, 3, 3, 0, 0},
    {"psmgmt-deep-esb01.xml", 1, 1, 3, 3, 0, 0},
    {"psmgmt-jureca-dc-gpu-jrc0323.xml", 8, 4, 6, 6, 0, 0},
    {"psmgmt-juwels-booster-jwb0001.xml", 8, 4, 6, 6, 0, 0},
    {"psmgmt-juwels-booster-jwb0004.xml", 8, 4, 6, 6, 0, 0},
    {"psmgmt-juwels-cluster-gpu-jwc09n003.xml", 2, 4, 6, 6, 0, 0},
    {"psmgmt-meluxina-gpu-mel2001.xml", 8, 4, 4, 4, 0, 0},
}};

uint32_t links(const Machine& machine, LinkType type) {
  uint32_t count = 0;
  for (const Link& link : machine.links())
    if (link.type == type) count += link.count;
  return count;
}

std::string counts(uint32_t numa, uint32_t gpus, uint32_t nics, uint32_t ports, uint32_t nvlinks,
                   uint32_t xgmi) {
  return fmt::format("{} NUMA nodes, {} GPUs, {} NICs, {} ports, {} NVLinks, {} XGMI", numa, gpus,
                     nics, ports, nvlinks, xgmi);
}

std::string counts(const Machine& m) {
  return counts(m.count(DeviceKind::numa), m.count(DeviceKind::gpu), m.count(DeviceKind::nic),
                m.count(DeviceKind::port), links(m, LinkType::nvlink), links(m, LinkType::xgmi));
}

// A pair of ends with no path between; empty: none.
std::string unconnected(const Machine& m) {
  const Paths paths(m, Paths::View::nccl);
  for (uint32_t a = 0; a < m.devices().size(); a++)
    for (uint32_t b = 0; b < m.devices().size(); b++)
      if (m.devices()[a].kind == DeviceKind::gpu && m.devices()[b].kind == DeviceKind::port &&
          paths.between(a, b).type == PathClass::dis)
        return m.devices()[a].label + " to " + m.devices()[b].label;
  return {};
}

// What is the same of two hosts of one kind: all but names and GUIDs.
std::string shape(const Machine& m) {
  std::string out;
  for (const Device& d : m.devices())
    out += fmt::format("{} {} {} {} {}\n", name(d.kind), d.parent,
                       d.identity.bdf ? to_text(*d.identity.bdf) : "",
                       d.pcie_speed ? d.pcie_speed->value : 0, d.model ? d.model->value : "");
  for (const Link& link : m.links())
    out += fmt::format("{} {} {} {}\n", link.a, link.b, name(link.type),
                       link.bandwidth ? link.bandwidth->value.bytes_per_second : 0);
  return out;
}

// What differs between the links of GPUs of a host and those that are read from its NCCL XML: their
// rates, but for xGMI's, which hwloc's files tell and NCCL's cannot.
std::string lost_in_nccl_xml(const Topology& topology) {
  const auto xml = write_nccl_xml(topology);
  if (!xml) return xml.error().text;
  const auto rates = [](const Machine& m) {
    std::map<std::string, double> out;
    for (const Link& link : m.links())
      if (is_gpu_link(link.type) && link.type != LinkType::xgmi && link.bandwidth)
        out[fmt::format(
            "{} of {} and {}", name(link.type), to_text(*m.devices()[link.a].identity.bdf),
            m.devices()[link.b].identity.bdf ? to_text(*m.devices()[link.b].identity.bdf)
                                             : "a CPU")] += link.bandwidth->value.bytes_per_second;
    return out;
  };
  const auto before = rates(*topology.hosts[0].machine);
  const auto after = rates(*xml->again.hosts[0].machine);
  for (const auto& [ends, rate] : before)
    if (const auto found = after.find(ends); found == after.end() || found->second != rate)
      return fmt::format("{}: {:g} became {:g}", ends, rate,
                         found == after.end() ? 0 : found->second);
  return before.size() == after.size() ? "" : "there are more";
}

void check(Tap& tap, const std::filesystem::path& folder, const Row& row) {
  const auto read = read_topology_file(folder / row.file);
  if (!read) return tap.check(false, fmt::format("{} is read", row.file), read.error().text);
  const Machine& machine = *read->hosts[0].machine;
  const auto right = counts(row.numa, row.gpus, row.nics, row.ports, row.nvlinks, row.xgmi);
  tap.check(counts(machine) == right, fmt::format("{} has {}", row.file, right), counts(machine));
  tap.check(unconnected(machine).empty(), fmt::format("{} is connected", row.file),
            unconnected(machine));
  const std::string lost = lost_in_nccl_xml(*read);
  tap.check(lost.empty(), fmt::format("{} keeps its links' rates in NCCL's XML", row.file), lost);
}

int main(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) {
    fmt::print("1..0 # SKIP no recorded machines in {}\n", folder.string());
    return 0;
  }
  Tap tap;
  for (const Row& row : kRows) check(tap, folder, row);
  const auto one = read_topology_file(folder / "psmgmt-juwels-booster-jwb0001.xml");
  const auto two = read_topology_file(folder / "psmgmt-juwels-booster-jwb0004.xml");
  tap.check(one && two && shape(*one->hosts[0].machine) == shape(*two->hosts[0].machine),
            "hwloc 1 and 2 tell the same of two hosts of a kind");
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(crosstie::test::recorded() / "../hwloc"); }
