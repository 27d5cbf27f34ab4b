// SPDX-License-Identifier: Apache-2.0
// Topologies from text and to text. Errors name the place and what is wrong with it; the caller
// knows which file it was.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "topology/overlay.h"
#include "topology/topology.h"

namespace crosstie {

// Any file that we read, told apart by its suffix, else by its content. Errors name the file.
Result<Topology> read_topology_file(const std::filesystem::path& file);

// NCCL's own (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), and RCCL's dialect of it. `source` is told
// by the Machine as where it comes from.
Result<Machine> read_nccl_xml(std::string_view text, std::string source);

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

// The machines built in.
struct KnownMachine {
  std::string_view name;
  std::string_view toml;
};
std::span<const KnownMachine> known_machines();

// For people: what contains what, link speeds, and what is unsure.
std::string tree_text(const Topology& topology);
// For programs; has a schema version. What is written is read back whole, but for text that is
// not Unicode.
std::string json_text(const Topology& topology);
Result<Topology> read_json(std::string_view text);

}  // namespace crosstie
