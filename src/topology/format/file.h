// SPDX-License-Identifier: Apache-2.0
// Files as the readers of formats get them. Private to this folder.
#pragma once
#include <filesystem>

#include "topology/topology.h"

namespace crosstie {

// A file of text, or what comes through a pipe, whole. Errors name it.
Result<std::string> read_text(const std::filesystem::path& file);

// A topology file that is no cluster file, so that none can name itself. Errors name it.
Result<Topology> read_host_file(const std::filesystem::path& file);

// A cluster where the text describes hosts, else a machine.
Result<Topology> read_toml(std::string_view text, std::string source);

}  // namespace crosstie
