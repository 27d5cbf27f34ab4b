// SPDX-License-Identifier: Apache-2.0
// Suspicious facts of a topology: each with why it is suspicious and what to do.
#pragma once
#include "base/finding.h"
#include "topology/topology.h"

namespace crosstie {

// The worst first. Hosts that share a machine are checked once. Hosts that have the same models of
// GPUs are taken to be meant alike; those unlike the most of them are said to be odd.
std::vector<Finding> check(const Topology& topology);

}  // namespace crosstie
