// SPDX-License-Identifier: Apache-2.0
// Schedules with one step of one rank's Program spoilt, to see whether the prover notices.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/site.h"

namespace crosstie::test {

// The same but for this rank's Program.
Schedule changed(const Schedule& schedule, uint32_t rank, std::function<void(Program&)> change);

struct Mutant {
  std::string name;  // what was done, and where
  Schedule schedule;
  // Where it is right all the same: some faults show only in place, some only out of place.
  bool harmless_in_place = false, harmless_out_of_place = false;
};
// Every step of the rank left out, and spoilt in every way that its kind allows.
std::vector<Mutant> mutants(const Schedule& schedule, uint32_t rank);

}  // namespace crosstie::test
