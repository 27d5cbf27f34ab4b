// SPDX-License-Identifier: Apache-2.0
#include "cost/profile.h"

#include <bit>
#include <cmath>

#include "base/digest.h"
#include "cost/facts_toml.h"

namespace crosstie {
namespace {

constexpr double kNormal95 = 1.96;  // standard deviations

std::optional<size_t> index_of(std::string_view name) {
  for (size_t i = 0; i < kParameters; i++)
    if (parameter_rows()[i].name == name) return i;
  return std::nullopt;
}

// What a value can be at all: a fit moves none as far, and with such as these no time is infinite.
Interval sane_of(Parameter parameter) {
  constexpr double kMost = 1e4;
  const double expected = row_of(parameter).expected;
  return {expected / kMost, std::min(expected * kMost, most(parameter))};
}
ParameterUnit unit_of(size_t index) { return parameter_rows()[index].unit; }

class Reader : TomlValues {
 public:
  Result<Profile> read(const toml::table& root) {
    allow(root, "a profile", {"schema", "name", "source", "parameters", "system"});
    const auto schema = need<int64_t>(root, "schema");
    if (status_ && schema != Profile::kSchema)
      mistake(*root.get("schema"), fmt::format("the schema is {}; this release reads schema {}",
                                               schema, Profile::kSchema));
    profile_.name = need<std::string>(root, "name");
    profile_.source = need<std::string>(root, "source");
    if (const toml::table* parameters = root["parameters"].as_table())
      for (const auto& [name, node] : *parameters) read_parameter(name.str(), node);
    else
      mistake(root, "'parameters' is needed, a table");
    if (const toml::node* system = root.get("system")) read_system(*system);
    // Those that it does not name stay as expected; a file that names none was cut off.
    if (status_ && root["parameters"].as_table()->empty())
      mistake(*root.get("parameters"), "'parameters' names none of the model's");
    if (!status_) return tl::unexpected(status_.error());
    return std::move(profile_);
  }

 private:
  void read_parameter(std::string_view name, const toml::node& node) {
    const auto index = index_of(name);
    if (!index) return mistake(node, fmt::format("no parameter is named '{}'", printable(name)));
    if (!node.is_table()) return mistake(node, fmt::format("'{}' must be a table", name));
    const toml::table& in = *node.as_table();
    allow(in, "a parameter", {"value", "low", "high", "source"});
    const Interval sane = sane_of(static_cast<Parameter>(*index));
    const auto number = [&](std::string_view key) {
      const double value = need<double>(in, key);
      if (status_ && !(value >= sane.low && value <= sane.high))
        mistake(*in.get(key), fmt::format("'{}' of {} must be from {:.4g} to {:.4g} {}", key, name,
                                          sane.low, sane.high, crosstie::name(unit_of(*index))));
      return value;
    };
    const double value = number("value"), low = number("low"), high = number("high");
    if (status_ && !(low <= value && value <= high))
      mistake(node, fmt::format("'value' of {} must lie between its 'low' and 'high'", name));
    profile_.values.all()[*index] = value, profile_.intervals[*index] = {low, high};
    profile_.sources[*index] = in.contains("source") ? need<std::string>(in, "source") : "";
  }

  void read_system(const toml::node& node) {
    if (!node.is_table()) return mistake(node, "'system' must be a table");
    const auto facts = read_facts(*node.as_table());
    if (facts)
      profile_.system = *facts;
    else if (status_)
      status_ = tl::unexpected(facts.error());
  }

  Profile profile_ = Profile::expected();
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) (c == '"' || c == '\\') ? out += '\\', out += c : out += c;
  return out + '"';
}

}  // namespace

Profile Profile::expected() {
  Profile profile{"expected", "what is known before any measurement"};
  for (size_t i = 0; i < kParameters; i++) {
    const ParameterRow& row = parameter_rows()[i];
    const double factor = std::pow(row.factor, kNormal95);
    profile.intervals[i] = {row.expected / factor,
                            std::min(row.expected * factor, most(static_cast<Parameter>(i)))};
    profile.sources[i] = row.source;
  }
  return profile;
}

uint64_t Profile::digest() const {
  Digest digest;
  for (const double value : values.all()) digest.add(std::bit_cast<uint64_t>(value));
  if (system) digest.add(write_facts(*system));
  return digest.value();
}

Result<Profile> read_profile(std::string_view toml) {
  return parse_toml(toml, [](const toml::table& root) { return Reader().read(root); });
}

std::string write_profile(const Profile& profile) {
  std::string out = fmt::format("schema = {}\nname = {}\nsource = {}\n", Profile::kSchema,
                                quoted(profile.name), quoted(profile.source));
  if (profile.system) out += "\n[system]\n" + write_facts(*profile.system);
  for (size_t i = 0; i < kParameters; i++) {
    const ParameterRow& row = parameter_rows()[i];
    out += fmt::format(
        "\n# {} ({})\n[parameters.{}]\nvalue = {:#.4g}\nlow = {:#.4g}\nhigh = {:#.4g}\n",
        row.meaning, name(row.unit), row.name, profile.values.all()[i], profile.intervals[i].low,
        profile.intervals[i].high);
    if (!profile.sources[i].empty())
      out += fmt::format("source = {}\n", quoted(profile.sources[i]));
  }
  return out;
}

}  // namespace crosstie
