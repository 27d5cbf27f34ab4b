// SPDX-License-Identifier: Apache-2.0
// How what is assumed is marked, in text and pictures alike.
#pragma once
#include <string_view>

#include "topology/device.h"

namespace crosstie {

inline constexpr std::string_view kAssumedMark = "~";
inline constexpr std::string_view kAssumedLegend = "~ assumed from the kind of link\n";

template <class T>
std::string_view mark(const Known<T>& known) {
  return known.from == Provenance::assumed ? kAssumedMark : "";
}

}  // namespace crosstie
