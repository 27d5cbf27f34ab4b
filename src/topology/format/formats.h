// SPDX-License-Identifier: Apache-2.0
// Topologies from text and to text. Errors name the place and what is wrong with it; the caller
// knows which file it was.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace crosstie {

// Any file that we read, told apart by its suffix, else by its content. Errors name the file.
Result<Topology> read_topology_file(const std::filesystem::path& file);

// NCCL's own (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), and RCCL's dialect of it. `source` is told
// by the Machine as where it comes from.
Result<Machine> read_nccl_xml(std::string_view text, std::string source);

// hwloc's own (lstopo FILE.xml), of its versions 1 to 3.
Result<Machine> read_hwloc_xml(std::string_view text, std::string source);

// A machine description; data/machines/ holds ours. machine_toml.cc has
// the schema.
Result<Machine> read_machine_toml(std::string_view text, std::string source);

// "dgx-h100", "2x dgx-h100": hosts of a machine that we know.
Result<Topology> read_synthetic(std::string_view text);

// The machines built in.
struct KnownMachine {
  std::string_view name;
  std::string_view toml;
};
std::span<const KnownMachine> known_machines();

// For people: what contains what, link speeds, and what is unsure.
std::string tree_text(const Topology& topology);
// For programs; has a schema version.
std::string json_text(const Topology& topology);

}  // namespace crosstie
