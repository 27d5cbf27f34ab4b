// SPDX-License-Identifier: Apache-2.0
// What about measured runs looks wrong: so that nobody takes a sick system's times for the
// system's.
#pragma once
#include <span>

#include "base/finding.h"
#include "cost/calibration.h"

namespace crosstie {

// One finding a run and kind, with the worst case as evidence. values: what the times are expected
// to be like. Of how well the fit explains a run it reads the errors after it.
std::vector<Finding> health_of(std::span<const CalibratedRun> runs, const ParameterValues& values);

}  // namespace crosstie
