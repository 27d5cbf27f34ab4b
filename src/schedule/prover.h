// SPDX-License-Identifier: Apache-2.0
// Proves a Schedule by running all Programs symbolically: every element of the result holds
// every rank's contribution exactly once; no memory is read or written in a race; nothing
// waits for ever. It holds for every count, since it reasons about fractions, not elements.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "schedule/schedule.h"

namespace crosstie {

struct ProofOptions {
  uint32_t chunks = 1;
  bool in_place = false;
};

// The error names the first defect: rank, lane, step, chunk and what is wrong there.
Status prove(const Schedule& schedule, ProofOptions options);

}  // namespace crosstie
