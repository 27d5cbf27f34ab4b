// SPDX-License-Identifier: Apache-2.0
// What a Schedule moves, counted from its Programs.
#pragma once
#include <cstdint>

#include "schedule/schedule.h"
#include "schedule/slicer.h"

namespace crosstie {

struct Traffic {
  uint64_t inside_bytes = 0;  // put to ranks of the same host
  uint64_t across_bytes = 0;  // put to ranks of other hosts
};

// Of one rank's puts.
Traffic traffic(const Schedule& schedule, const Shape& shape, uint32_t rank, const Slicer& slicer,
                uint32_t element_size);

}  // namespace crosstie
