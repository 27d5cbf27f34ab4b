// SPDX-License-Identifier: Apache-2.0
// What can be seen of Programs without running them. Of the prover.
#pragma once
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace crosstie {

// Every number is within the frame, both sides of a step are the same proper part and none is
// longer than the frame's largest, only `out` and scratch are written, only scratch by puts, and
// every flag that is waited for is raised by one step and no other.
Status check_well_formed(const Schedule::Frame& frame, const std::vector<Program>& programs);

}  // namespace crosstie
