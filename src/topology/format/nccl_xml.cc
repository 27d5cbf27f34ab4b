// SPDX-License-Identifier: Apache-2.0
// Reads NCCL's topology XML: the file, and the hosts in it. NCCL's own parser is stricter about
// spelling (one blank between attributes, no entities); we read whatever is XML.
#include <algorithm>
#include <map>

#include "topology/format/formats.h"
#include "topology/format/nccl_xml_host.h"
#include "topology/xml.h"

namespace crosstie {
namespace {

using pugi::xml_node;

// NCCL fuses the hosts of an NVLink domain into one file and tells them apart by a hash of their
// names. A cpu without one is of the host before it.
std::vector<std::vector<xml_node>> cpus_by_host(const xml_node& system) {
  std::map<std::string, size_t> places;
  std::vector<std::vector<xml_node>> hosts;
  std::string hash;
  for (const xml_node& cpu : system.children("cpu")) {
    if (cpu.attribute("host_hash")) hash = cpu.attribute("host_hash").value();
    const auto [place, is_new] = places.emplace(hash, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[place->second].push_back(cpu);
  }
  return hosts;
}

// NVLink leaves a host by way of switches only.
bool has_nvswitch(const Host& host) { return host.machine->count(DeviceKind::nvswitch) > 0; }

Result<Topology> read_hosts(const xml_node& system, const Lines& lines, const std::string& source) {
  const auto hosts = cpus_by_host(system);
  if (hosts.empty()) return fail(Code::invalid, "describes no cpu, hence nothing");
  const std::string name = system.attribute("name").as_string("host");
  Topology topology;
  for (size_t i = 0; i < hosts.size(); i++) {
    const std::string own = hosts.size() == 1 ? name : fmt::format("{}-{}", name, i);
    auto machine = read_nccl_xml_host({own, hosts[i], i == 0 ? system : xml_node()}, lines, source);
    if (!machine) return pass(machine);
    topology.hosts.push_back({own, std::make_shared<const Machine>(std::move(*machine))});
  }
  if (std::ranges::count_if(topology.hosts, has_nvswitch) > 1)
    for (Host& host : topology.hosts)
      if (has_nvswitch(host)) host.domain = name;
  return topology;
}

Status expect_system(const xml_node& root) {
  const std::string_view name = root.name();
  if (name == "system") return {};
  if (name == "graphs")
    return fail(Code::invalid, "holds NCCL graphs (NCCL_GRAPH_FILE), not a topology");
  return fail(Code::invalid, "root element <{}>, where NCCL's topologies have <system>", name);
}

}  // namespace

Result<Topology> read_nccl_xml(std::string_view text, const std::string& source) {
  pugi::xml_document document;
  if (const Status parsed = load_xml(text, document); !parsed) return pass(parsed);
  const xml_node root = document.document_element();
  if (!root) return fail(Code::invalid, "no element in it");
  if (const Status right = expect_system(root); !right) return pass(right);
  const Lines lines(text);
  for (xml_node other = root.next_sibling(); other; other = other.next_sibling())
    if (other.type() == pugi::node_element)
      return fail(Code::invalid, "line {}: <{}> after the root element; give it a file of its own",
                  lines.of(other), other.name());
  return read_hosts(root, lines, source);
}

}  // namespace crosstie
