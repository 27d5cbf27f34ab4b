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

// Orders names as people do: numbers within them count by their value, rack2 before rack10.
struct NaturalOrder {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    for (std::string_view x = a, y = b; !x.empty() && !y.empty();) {
      const std::string_view one = token(x), other = token(y);
      if (const auto order = compare(one, other); order != 0) return order < 0;
      x.remove_prefix(one.size());
      y.remove_prefix(other.size());
      if (x.empty() != y.empty()) return x.empty();
    }
    return a < b;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // A number, or one other character.
  static std::string_view token(std::string_view text) {
    size_t end = 1;
    while (is_digit(text[0]) && end < text.size() && is_digit(text[end])) end++;
    return text.substr(0, end);
  }
  static int compare(std::string_view a, std::string_view b) {
    if (!is_digit(a[0]) || !is_digit(b[0])) return a.substr(0, 1).compare(b.substr(0, 1));
    for (std::string_view* number : {&a, &b})
      number->remove_prefix(std::min(number->find_first_not_of('0'), number->size()));
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
};

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
