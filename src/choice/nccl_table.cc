// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_table.h"

#include <algorithm>
#include <span>

namespace crosstie {
namespace {

// More than any release has by far: larger counts are not counts.
constexpr int kMostAlgorithms = 64, kMostProtocols = 16;

size_t index(const NcclCostTable& table, Algorithm algorithm, Protocol protocol) {
  return static_cast<size_t>(algorithm) * static_cast<size_t>(table.protocols) +
         static_cast<size_t>(protocol);
}

// False for NaN too.
bool is_time_or_ignored(float entry) { return entry == kNcclIgnored || entry > kNcclWinning; }

}  // namespace

bool NcclCostTable::has(Algorithm algorithm, Protocol protocol) const {
  return size() > 0 && static_cast<int>(algorithm) < algorithms &&
         static_cast<int>(protocol) < protocols;
}

float& NcclCostTable::at(Algorithm algorithm, Protocol protocol) const {
  return microseconds[index(*this, algorithm, protocol)];
}

size_t NcclCostTable::size() const {
  const bool sound = microseconds != nullptr && algorithms > 0 && algorithms <= kMostAlgorithms &&
                     protocols > 0 && protocols <= kMostProtocols;
  return sound ? static_cast<size_t>(algorithms) * static_cast<size_t>(protocols) : 0;
}

std::string_view untouchable(const NcclCostTable& table) {
  const std::span<const float> entries(table.microseconds, table.size());
  if (entries.empty()) return "NCCL's cost table has no entries";
  if (!std::all_of(entries.begin(), entries.end(), is_time_or_ignored))
    return "NCCL's cost table has an entry that is no time";
  return {};
}

bool make_winner(const NcclCostTable& table, Algorithm algorithm, Protocol protocol) {
  if (!untouchable(table).empty() || !table.has(algorithm, protocol)) return false;
  float& entry = table.at(algorithm, protocol);
  if (entry == kNcclIgnored) return false;
  entry = kNcclWinning;
  return true;
}

}  // namespace crosstie
