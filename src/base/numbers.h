// SPDX-License-Identifier: Apache-2.0
// Numbers in text, whatever the locale: all of the text or nothing.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace crosstie {

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace crosstie
