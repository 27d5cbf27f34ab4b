// SPDX-License-Identifier: Apache-2.0
// The one list of all option tables, for the command, the manual and typing errors.
#pragma once
#include <vector>

#include "base/options.h"

namespace crosstie {

// Every row of every room, sorted by name.
std::vector<const OptionRow*> all_options();

}  // namespace crosstie
