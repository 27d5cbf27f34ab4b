// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "topology/machine.h"

namespace crosstie::test {

inline std::string source_folder() {
  const char* const folder = std::getenv("srcdir");
  return folder == nullptr ? "." : folder;
}

inline std::string golden(const std::string& file) {
  return source_folder() + "/tests/golden/" + file;
}

// Recorded machines, which are no part of the project.
inline std::filesystem::path recorded() {
  return source_folder() + "/../shared/data/topologies/nccl";
}

inline std::string read_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

inline Device numa(uint32_t number) {
  Device d{.kind = DeviceKind::numa};
  d.identity.number = number;
  return d;
}

inline const Device* find(const Machine& machine, std::string_view label) {
  for (const Device& d : machine.devices())
    if (d.label == label) return &d;
  return nullptr;
}

inline const Link* find_link(const Machine& machine, std::string_view a, std::string_view b) {
  for (const Link& link : machine.links()) {
    const std::string& one = machine.devices()[link.a].label;
    const std::string& other = machine.devices()[link.b].label;
    if ((one == a && other == b) || (one == b && other == a)) return &link;
  }
  return nullptr;
}

inline bool has_gap(const Machine& machine, std::string_view device, std::string_view about) {
  for (const Gap& gap : machine.gaps())
    if (gap.device == device && gap.missing.find(about) != std::string::npos) return true;
  return false;
}

inline uint32_t nvlinks(const Machine& machine) {
  uint32_t count = 0;
  for (const Link& link : machine.links())
    if (link.type == LinkType::nvlink) count += link.count;
  return count;
}

}  // namespace crosstie::test
