// SPDX-License-Identifier: Apache-2.0
// Small things done to text in more than one room.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace crosstie {

inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// "a, b and 3 more": of many names the first.
template <class Names>
std::string some_of(const Names& names, size_t most) {
  const auto count = static_cast<size_t>(std::ranges::distance(names));
  const size_t named = std::min(count, most);
  const auto begin = std::ranges::begin(names);
  return fmt::format(
      "{}{}", fmt::join(begin, std::ranges::next(begin, static_cast<ptrdiff_t>(named)), ", "),
      count > named ? fmt::format(" and {} more", count - named) : "");
}

}  // namespace crosstie
