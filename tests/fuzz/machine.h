// SPDX-License-Identifier: Apache-2.0
// What any reader of machines promises: a machine that keeps its own promises and can be shown, or
// an error.
#pragma once
#include "target.h"
#include "topology/format/formats.h"

namespace crosstie::fuzz {

inline void expect_machine_or_error(Result<Machine> machine) {
  if (!machine) {
    PROMISE(!machine.error().text.empty());
    return;
  }
  PROMISE(validate(*machine).has_value());
  const Topology topology = single_host(std::move(*machine));
  PROMISE(!tree_text(topology).empty() && !json_text(topology).empty());
}

}  // namespace crosstie::fuzz
