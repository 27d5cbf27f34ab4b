// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>

#include "api/options.h"
#include "nccl/options.h"
#include "runtime/options.h"
#include "transport/options.h"

namespace crosstie {
namespace {

template <class Visit>
void for_each_table(const Visit& visit) {
  visit(std::span<const Option<LibraryOptions>>(kLibraryOptions));
  visit(std::span<const Option<RuntimeOptions>>(kRuntimeOptions));
  visit(std::span<const Option<nccl::TunerOptions>>(nccl::kTunerOptions));
  visit(std::span<const Option<TransportOptions>>(kTransportRows));
}

// As the room itself reads it: by the row's parser, then by the table's limits if it has any.
template <class Config>
Status judge(std::span<const Option<Config>> table, const OptionRow& row, std::string_view value) {
  std::map<std::string, std::string> alone;
  alone.emplace(row.name, value);
  const auto options = read_options<Config>(table, Environment(std::move(alone)));
  if (!options) return pass(options);
  if constexpr (requires { check(*options); }) return check(*options);
  return {};
}

}  // namespace

std::vector<Setting> all_settings(const Environment& environment) {
  std::vector<Setting> settings;
  for_each_table([&](const auto& table) {
    for (const OptionRow& row : table) {
      const std::string_view value = value_in_effect(row, environment);
      settings.push_back({&row, value, judge(table, row, value)});
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
