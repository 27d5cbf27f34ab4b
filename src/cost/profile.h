// SPDX-License-Identifier: Apache-2.0
// The cost model's parameters in a file: each with value, interval and where it comes from.
//
//   schema = 1
//   name = "published"
//   source = "…"             # of what is not told below
//   [parameters.ll_step]     # those not named stay as expected
//   value = 1.35             # in the unit of the parameter's row
//   low = 1.16               # 95 % lie between low and high
//   high = 1.58
//   source = "…"             # optional
//   [system]                 # what they were measured on, if one system: see facts_toml.h
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/embedded.h"
#include "base/result.h"
#include "cost/parameters.h"
#include "cost/system_facts.h"

namespace crosstie {

// 95 % of the parameter's probability lies between low and high.
struct Interval {
  double low = 0, high = 0;
};

struct Profile {
  static constexpr int64_t kSchema = 1;

  std::string name, source;
  ParameterValues values = ParameterValues::expected();
  std::array<Interval, kParameters> intervals{};
  std::array<std::string, kParameters> sources{};  // empty: the profile's
  std::optional<SystemFacts> system{};             // of a host; none: of no system in particular

  static Profile expected();
  uint64_t digest() const;  // of what predictions follow from
};

// Fails for another schema, unknown keys and values that cannot be.
Result<Profile> read_profile(std::string_view toml);
std::string write_profile(const Profile& profile);

// data/profiles. The first is what is used where none is named.
std::span<const EmbeddedToml> known_profiles();

}  // namespace crosstie
