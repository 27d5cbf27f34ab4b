// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_table.h"

#include <algorithm>
#include <span>

namespace crosstie {
namespace {

// False for NaN too.
bool is_time_or_ignored(float entry) { return entry == kNcclIgnored || entry > kNcclWinning; }

}  // namespace

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
