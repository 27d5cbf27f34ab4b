// SPDX-License-Identifier: Apache-2.0
// Topologies from text and to text. Errors name the place and what is wrong with it; the caller
// knows which file it was.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/embedded.h"
#include "topology/overlay.h"
#include "topology/topology.h"

namespace crosstie {

// Any file that we read, told apart by its suffix, else by its content. Errors name the file.
Result<Topology> read_topology_file(const std::filesystem::path& file);

// NCCL's own (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), and RCCL's dialect of it. Several hosts are
// those of one NVLink domain. `source` is told by the Machines as where they come from.
Result<Topology> read_nccl_xml(std::string_view text, const std::string& source);
// That NCCL itself loads: one host, or the hosts of one NVLink domain, within the limits of its
// parser; fails where a topology exceeds them or holds a name that the parser cannot take. What had
// to be invented or left out is said in a comment.
struct NcclXml {
  std::string text;
  Topology again;        // as it is read from there
  std::string left_out;  // one line for people; empty: nothing is
};
Result<NcclXml> write_nccl_xml(const Topology& topology);
Result<std::string> nccl_xml_text(const Topology& topology);

// hwloc's own (lstopo FILE.xml), of its versions 1 to 3.
Result<Machine> read_hwloc_xml(std::string_view text, std::string source);

// A machine description; data/machines/ holds ours. machine_toml.cc has
// the schema.
Result<Machine> read_machine_toml(std::string_view text, std::string source);

// A cluster: hosts of some kinds, their rails, leaf switches and NVLink domains. cluster_toml.cc
// has the schema. Files that it names are relative to `source`, the file that the text is from.
Result<Topology> read_cluster_toml(std::string_view text, std::string source);

// What a VM hides; overlay_toml.cc has the schema.
Result<Overlay> read_overlay_toml(std::string_view text);
Result<Overlay> read_overlay_file(const std::filesystem::path& file);

// "dgx-h100", "2x dgx-h100": hosts of a machine that we know.
Result<Topology> read_synthetic(std::string_view text);
// What such text says, of whatever machine; fails on a number of hosts that cannot be.
struct Wish {
  uint32_t hosts = 1;
  std::string_view machine;
};
Result<Wish> parse_wish(std::string_view text);

// The machines built in.
using KnownMachine = EmbeddedToml;
std::span<const KnownMachine> known_machines();
bool is_known_machine(std::string_view name);

// For people: what contains what, link speeds, and what is unsure.
std::string tree_text(const Topology& topology);
// What is between each two GPUs and NICs, in the words of `nvidia-smi topo -m`.
std::string matrix_text(const Topology& topology);
// A line for each pair of GPUs, and of a GPU and a port: what joins them, and what NCCL takes.
std::string paths_text(const Topology& topology);
// For programs; has a schema version. What is written is read back whole, but for text that is
// not Unicode. Rails are for others than us: reading passes over them, as they follow from the
// rest.
enum class JsonRails : uint8_t { none, matched };
std::string json_text(const Topology& topology, JsonRails rails = JsonRails::matched);
Result<Topology> read_json(std::string_view text);

}  // namespace crosstie
