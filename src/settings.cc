// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>

#include "api/options.h"
#include "nccl/options.h"
#include "runtime/options.h"
#include "topology/options.h"
#include "transport/options.h"

namespace crosstie {
namespace {

template <class Visit>
void for_each_table(const Visit& visit) {
  visit(std::span<const Option<LibraryOptions>>(kLibraryOptions));
  visit(std::span<const Option<RuntimeOptions>>(kRuntimeOptions));
  visit(std::span<const Option<nccl::ClassOptions>>(nccl::kClassOptions));
  visit(std::span<const Option<nccl::ProfileOptions>>(nccl::kProfileOptions));
  visit(std::span<const Option<nccl::ProfilerOptions>>(nccl::kProfilerOptions));
  visit(std::span<const Option<nccl::TunerOptions>>(nccl::kTunerOptions));
  visit(std::span<const Option<TopologyOptions>>(kTopologyOptions));
  visit(std::span<const Option<TransportOptions>>(kTransportRows));
}

// As the room itself reads it, were it the only one set.
template <class Config>
Status judge(std::span<const Option<Config>> table, const InEffect& given) {
  std::map<std::string, std::string> alone;
  alone.emplace(given.name, given.value);
  const auto options = read_options<Config>(table, Environment(std::move(alone)));
  if (!options) return pass(options);
  return {};
}

}  // namespace

std::vector<Setting> all_settings(const Environment& environment) {
  std::vector<Setting> settings;
  for_each_table([&](const auto& table) {
    for (const OptionRow& row : table) {
      const InEffect given = in_effect(row, environment);
      settings.push_back({&row, given, judge(table, given)});
    }
  });
  std::ranges::sort(settings, {}, [](const Setting& s) { return s.row->name; });
  return settings;
}

std::vector<const OptionRow*> all_options() {
  std::vector<const OptionRow*> rows;
  for (const Setting& setting : all_settings({})) rows.push_back(setting.row);
  return rows;
}

}  // namespace crosstie
