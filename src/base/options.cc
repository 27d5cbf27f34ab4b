// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/edit_distance.h"

namespace crosstie {
namespace {

// A hint is worth giving when at most a quarter of the name's own letters are wrong.
std::string hint_for(std::string_view name, std::span<const OptionRow* const> known) {
  constexpr size_t kPrefix = std::string_view("CROSSTIE_").size();
  std::vector<std::string_view> names;
  for (const OptionRow* row : known) names.push_back(row->name);
  return std::string(nearest(name, names, (name.size() - kPrefix + 3) / 4));
}

}  // namespace

Environment Environment::of_process() {
  std::map<std::string, std::string> values;
  for (char** entry = environ; entry && *entry; entry++) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(values));
}

const std::string* Environment::find(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() || it->second.empty() ? nullptr : &it->second;
}

Status parse_value(std::string_view text, bool& value) {
  if (text != "0" && text != "1") return fail(Code::invalid, "'{}' is neither 0 nor 1", text);
  value = text == "1";
  return {};
}

Status parse_value(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return fail(Code::invalid, "'{}' is out of range", text);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(Code::invalid, "'{}' is not a whole number", text);
  return {};
}

Status parse_value(std::string_view text, std::string& value) {
  value = text;
  return {};
}

Status parse_value(std::string_view text, std::chrono::nanoseconds& value) {
  const auto parsed = parse_duration(text);
  if (!parsed) return pass(parsed);
  value = *parsed;
  return {};
}

Status parse_value(std::string_view text, Bytes& value) {
  const auto parsed = parse_bytes(text);
  if (!parsed) return pass(parsed);
  value.count = *parsed;
  return {};
}

InEffect in_effect(const OptionRow& row, const Environment& environment) {
  if (const std::string* own = environment.find(row.name)) return {row.name, *own};
  if (!row.alias.empty())
    if (const std::string* other = environment.find(row.alias)) return {row.alias, *other};
  return {row.name, row.fallback};
}

std::string as_set(std::string text, const OptionRow& row, const Environment& environment) {
  if (text.starts_with(fmt::format("{}:", row.name)))
    text.replace(0, row.name.size(), in_effect(row, environment).name);
  return text;
}

std::string to_text(const Unknown& unknown) {
  return fmt::format("{} is no variable of ours{}", unknown.name,
                     unknown.hint.empty() ? "" : fmt::format("; did you mean {}?", unknown.hint));
}

std::vector<Unknown> unknown_variables(std::span<const OptionRow* const> known,
                                       const Environment& environment) {
  std::vector<Unknown> unknown;
  for (const auto& [name, value] : environment.values()) {
    if (!name.starts_with("CROSSTIE_")) continue;
    const auto same = [&name = name](const OptionRow* row) { return row->name == name; };
    if (std::none_of(known.begin(), known.end(), same))
      unknown.push_back({name, hint_for(name, known)});
  }
  return unknown;
}

}  // namespace crosstie
