// SPDX-License-Identifier: Apache-2.0
// How far a typing error is from what was meant, and what that was.
#pragma once
#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace crosstie {

// Levenshtein's, by Wagner and Fischer, one row at a time.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// The first of the names that are nearest, and at most so many letters off; else empty.
template <class Names>
std::string_view nearest(std::string_view word, const Names& names, size_t most) {
  std::string_view best;
  size_t bound = most + 1;
  for (const std::string_view name : names)
    if (const size_t d = edit_distance(word, name); d < bound) bound = d, best = name;
  return best;
}

}  // namespace crosstie
