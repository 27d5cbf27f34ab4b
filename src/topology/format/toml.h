// SPDX-License-Identifier: Apache-2.0
// What our readers of TOML share beyond base/toml.h. Private to this folder.
#pragma once
#include "base/toml.h"
#include "topology/format/formats.h"

namespace crosstie {

class TomlReader : protected TomlValues {
 protected:
  // Those of PCIe, which are all that NCCL knows.
  double pcie_speed(const toml::table& in, std::string_view key) {
    return need_one_of(in, key, std::array<double, 6>{2.5, 5, 8, 16, 32, 64});  // GT/s
  }
  int pcie_lanes(const toml::table& in, std::string_view key) {
    return static_cast<int>(need_one_of(in, key, std::array<int64_t, 7>{1, 2, 4, 8, 12, 16, 32}));
  }

  std::optional<Bdf> address(const toml::node& node) {
    const auto text = node.value<std::string>();
    if (!text) {
      mistake(node, "a PCI address must be a string, as \"0000:18:00.0\"");
      return std::nullopt;
    }
    const auto bdf = parse_bdf(*text);
    if (bdf) return *bdf;
    mistake(node, bdf.error().text);
    return std::nullopt;
  }

  // Into the links of each GPU to each NVSwitch.
  std::vector<uint32_t> links_to_switches(const toml::array& counts) {
    constexpr size_t kMostSwitches = 64;
    constexpr int64_t kMostLinks = 1024;  // GPUs of 2025 have 18 in all
    std::vector<uint32_t> links;
    if (counts.size() > kMostSwitches)
      mistake(counts, fmt::format("'links_to_switch' lists more than {}", kMostSwitches));
    for (const toml::node& node : counts) {
      const auto count = node.value_exact<int64_t>().value_or(0);
      if (count < 1 || count > kMostLinks)
        mistake(node, fmt::format("'links_to_switch' must hold numbers from 1 to {}", kMostLinks));
      if (!status_) return {};
      links.push_back(static_cast<uint32_t>(count));
    }
    return links;
  }
};

// The description of a machine as a table of another file.
Result<Machine> read_machine_table(const toml::table& table, std::string source);
Result<Overlay> read_overlay_table(const toml::table& table);

}  // namespace crosstie
