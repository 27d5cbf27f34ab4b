// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_kinds.h"

#include <charconv>

#include "base/toml.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

// "10de:15f9"
std::pair<uint16_t, uint16_t> parse_ids(std::string_view text) {
  uint16_t vendor = 0, device = 0;
  std::from_chars(text.data(), text.data() + text.size(), vendor, 16);
  const size_t colon = std::min(text.find(':'), text.size() - 1);
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), device, 16);
  return {vendor, device};
}

GpuKinds::Kind kind_of(const toml::table& of) {
  const auto gcn = of["gcn"].value_or(std::string());
  const int capability = of["compute_capability"].value_or(0);
  return {gcn.empty() ? capability : capability_of_gcn(gcn), gcn};
}

}  // namespace

// The data is our own: what is amiss in it is simply not known, and a test looks at all of it.
GpuKinds::GpuKinds() {
  for (const EmbeddedToml& file : known_gpus()) {
    const auto read = parse_toml(file.toml, [&](const toml::table& root) -> Status {
      for (const toml::node& gpu : *root["gpu"].as_array())
        for (const toml::node& ids : *(*gpu.as_table())["devices"].as_array())
          kinds_.emplace(parse_ids(ids.value_or(std::string_view())), kind_of(*gpu.as_table()));
      return {};
    });
    if (!read) kinds_.clear();
  }
}

const GpuKinds::Kind* GpuKinds::find(const PciIds& ids) const {
  const auto found = kinds_.find({ids.vendor, ids.device});
  return found == kinds_.end() ? nullptr : &found->second;
}

}  // namespace crosstie
