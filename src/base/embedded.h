// SPDX-License-Identifier: Apache-2.0
// Data built in (data/embed.awk), so that the command, the library and the plugin need no installed
// files.
#pragma once
#include <string_view>

namespace crosstie {

struct EmbeddedToml {
  std::string_view name;  // of the file, without ".toml"
  std::string_view toml;
};

}  // namespace crosstie
