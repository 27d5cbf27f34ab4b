// SPDX-License-Identifier: Apache-2.0
// What `crosstie calibrate` says of a fit, for people and for programs.
#pragma once
#include "cost/calibration.h"

namespace crosstie::tools {

// start: where the fit began.
std::string calibration_text(const Calibration& of, const Profile& start);
std::string calibration_json(const Calibration& of, const Profile& start);

}  // namespace crosstie::tools
