// SPDX-License-Identifier: Apache-2.0
// The one list of all option tables, for the command, the manual and typing errors.
#pragma once
#include <vector>

#include "base/options.h"

namespace crosstie {

// Every row of every room, sorted by name.
std::vector<const OptionRow*> all_options();

struct Setting {
  const OptionRow* row;
  InEffect given;  // lives as long as the environment
  Status valid;    // whether the room that reads it would take it
};
// The same rows with what the environment says.
std::vector<Setting> all_settings(const Environment& environment);

}  // namespace crosstie
