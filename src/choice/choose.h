// SPDX-License-Identifier: Apache-2.0
// Which of our own algorithms a collective on host memory should run. Reads the Shape and the
// size alone, so that all ranks decide alike.
#pragma once
#include <cstdint>

#include "choice/choice.h"
#include "topology/shape.h"

namespace crosstie {

// Closed forms of latency and bytes, best first; never abstains.
Choice choose_all_reduce(const Shape& shape, uint64_t bytes);

}  // namespace crosstie
