// SPDX-License-Identifier: Apache-2.0
#include "base/name_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace crosstie {

NameFilter::NameFilter(std::string_view text) {
  const auto take = [&text](char sign) {
    const bool there = text.starts_with(sign);
    text.remove_prefix(there);
    return there;
  };
  excludes_ = take('^');
  exact_ = take('=');
  for (const auto name : std::views::split(text, ','))
    if (!name.empty()) names_.emplace_back(name.begin(), name.end());
}

bool NameFilter::allows(std::string_view name, std::optional<uint32_t> port) const {
  if (names_.empty()) return true;
  return std::ranges::any_of(names_, [&](const std::string& wanted) {
           return matches(wanted, name, port);
         }) != excludes_;
}

bool NameFilter::matches(std::string_view wanted, std::string_view name,
                         std::optional<uint32_t> port) const {
  if (const size_t colon = wanted.rfind(':'); port && colon != wanted.npos) {
    if (wanted.substr(colon + 1) != fmt::format("{}", *port)) return false;
    wanted = wanted.substr(0, colon);
  }
  return exact_ ? name == wanted : name.starts_with(wanted);
}

}  // namespace crosstie
