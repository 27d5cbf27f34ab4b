// SPDX-License-Identifier: Apache-2.0
// What a class makes of predictions: which algorithms it may have, and which of several it wants.
#pragma once
#include <compare>

#include "choice/class_rules.h"
#include "cost/prediction.h"

namespace crosstie {

// NVLS takes slots of which a host has few: not every class is worth them.
inline bool allows(const CommunicatorClass& of, Algorithm algorithm) {
  const bool multicast = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  return of.nvls || !multicast;
}

// The least is wanted most. Those that are within the policy's worth of the least time come first,
// ordered by what the class aims at, then by time; then the others, by time.
struct Preference {
  bool slow = false;
  Seconds missed{}, time{};
  auto operator<=>(const Preference&) const = default;
};
Preference preference(const ClassPolicy& policy, Algorithm algorithm, const Prediction& prediction,
                      Seconds least);

}  // namespace crosstie
