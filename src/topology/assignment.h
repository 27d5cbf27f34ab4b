// SPDX-License-Identifier: Apache-2.0
// The cheapest way to give every row a column of its own.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace crosstie {

// What is cheaper in an earlier entry is cheaper; sums go entry by entry.
struct Cost {
  std::array<int64_t, 16> entries{};
  auto operator<=>(const Cost&) const = default;
  Cost& operator+=(const Cost& other) {
    for (size_t i = 0; i < entries.size(); i++) entries[i] += other.entries[i];
    return *this;
  }
  Cost& operator-=(const Cost& other) {
    for (size_t i = 0; i < entries.size(); i++) entries[i] -= other.entries[i];
    return *this;
  }
  friend Cost operator-(Cost a, const Cost& b) { return a -= b; }
};

// The column of each row, of the least sum of costs; equal costs give equal answers. There must be
// as many columns as rows at least.
std::vector<size_t> assign(size_t rows, size_t columns,
                           const std::function<Cost(size_t row, size_t column)>& cost);

}  // namespace crosstie
