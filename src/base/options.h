// SPDX-License-Identifier: Apache-2.0
// A variable is one row: name, alias, default, doc, and the field it sets. The parser,
// `crosstie config`, the manual's text and the hints for typing errors come from the rows.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/units.h"
#include "base/words.h"

namespace crosstie {

// Variables of a process, read once by a door and handed down; no room calls getenv.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}
  static Environment of_process();

  // Null where unset. An empty value counts as unset.
  const std::string* find(std::string_view name) const;
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// The part of a row that needs no knowledge of whose it is.
struct OptionRow {
  std::string_view name;      // CROSSTIE_...
  std::string_view alias;     // a name of NCCL's that is honoured too, or empty
  std::string_view fallback;  // the default, as a user would write it
  std::string_view doc;       // one sentence, no full stop
  std::string (*syntax)();
};

template <class Config>
struct Option : OptionRow {
  Status (*set)(Config&, std::string_view);
};

// How each type of field is read and described.
Status parse_value(std::string_view text, bool& value);
Status parse_value(std::string_view text, int& value);
Status parse_value(std::string_view text, std::string& value);
Status parse_value(std::string_view text, std::chrono::nanoseconds& value);
// A size in bytes.
struct Bytes {
  uint64_t count = 0;
};
Status parse_value(std::string_view text, Bytes& value);
inline std::string syntax_of(bool) { return "0|1"; }
inline std::string syntax_of(int) { return "number"; }
inline std::string syntax_of(const std::string&) { return "text"; }
inline std::string syntax_of(std::chrono::nanoseconds) { return "duration, as 500ms, 30s, 5m"; }
inline std::string syntax_of(Bytes) { return "size, as 256K, 16M (powers of 1024)"; }

template <class Word>
requires std::is_enum_v<Word> std::string syntax_of(Word) {
  return fmt::format("{}", fmt::join(Names<Word>::all, "|"));
}
template <class Word>
requires std::is_enum_v<Word> Status parse_value(std::string_view text, Word& value) {
  const auto found = word<Word>(text);
  if (!found) return fail(Code::invalid, "'{}' is none of {}", text, syntax_of(value));
  value = *found;
  return {};
}

// Makes a row: row<&TransportOptions::slots>("CROSSTIE_SLOTS", "", "8", "…").
template <auto Field>
struct FieldOf;
template <class Config, class T, T Config::*Field>
struct FieldOf<Field> {
  static Status set(Config& config, std::string_view text) {
    return parse_value(text, config.*Field);
  }
  static std::string syntax() { return syntax_of(T{}); }
  using Owner = Config;
};
template <auto Field>
constexpr Option<typename FieldOf<Field>::Owner> row(std::string_view name, std::string_view alias,
                                                     std::string_view fallback,
                                                     std::string_view doc) {
  return {{name, alias, fallback, doc, &FieldOf<Field>::syntax}, &FieldOf<Field>::set};
}

// What is in effect for a row, and the variable that users know it by: the row's own, or its alias
// where that gives the value.
struct InEffect {
  std::string_view name, value;
};
InEffect in_effect(const OptionRow& row, const Environment& environment);

// "ROW: what is wrong" as the user knows it: with the variable that is in effect.
std::string as_set(std::string text, const OptionRow& row, const Environment& environment);

// All fields from the environment, else from the rows' defaults; within the limits that the
// table's check() knows, if it has one.
template <class Config>
Result<Config> read_options(std::span<const Option<Config>> rows, const Environment& environment) {
  Config config;
  for (const Option<Config>& option : rows) {
    const InEffect given = in_effect(option, environment);
    const auto set = option.set(config, given.value);
    if (!set) return pass(set, given.name);
  }
  if constexpr (requires { check(config); })
    if (Status sane = check(config); !sane) {
      for (const Option<Config>& option : rows)
        sane.error().text = as_set(std::move(sane.error().text), option, environment);
      return pass(sane);
    }
  return config;
}

struct Unknown {
  std::string name;  // set in the environment, begins with CROSSTIE_, is no option
  std::string hint;  // the nearest option's name, or empty
};
// For people: "CROSSTIE_X is no variable of ours; did you mean CROSSTIE_Y?".
std::string to_text(const Unknown& unknown);
// Sorted by name.
std::vector<Unknown> unknown_variables(std::span<const OptionRow* const> known,
                                       const Environment& environment);

}  // namespace crosstie
