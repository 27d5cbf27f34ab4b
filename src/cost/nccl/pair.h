// SPDX-License-Identifier: Apache-2.0
// What runs a collective in NCCL, and what is said of its words in more than one place.
#pragma once
#include <compare>

#include "base/words.h"

namespace crosstie {

struct NcclPair {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  auto operator<=>(const NcclPair&) const = default;
};

// NVSwitches multicast and reduce.
constexpr bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}
// The network's switches reduce.
constexpr bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
}
// Ranks have a share of the buffer each: before it, or after.
constexpr bool has_shares(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter;
}

}  // namespace crosstie
