// SPDX-License-Identifier: Apache-2.0
#include "schedule/traffic.h"

namespace crosstie {
namespace {

uint64_t elements_of(Part part, const Slicer& slicer) {
  uint64_t elements = 0;
  for (uint32_t chunk = 0; chunk < slicer.chunks(); chunk++)
    elements += slicer.range(part, chunk).count;
  return elements;
}

}  // namespace

Traffic traffic(const Schedule& schedule, const Shape& shape, uint32_t rank, const Slicer& slicer,
                uint32_t element_size) {
  Traffic sum;
  const Program program = schedule.program(rank);
  for (const Lane& lane : program.lanes)
    for (const Step& step : lane.steps)
      if (const Put* put = std::get_if<Put>(&step))
        (shape.same_host(rank, put->peer) ? sum.inside_bytes : sum.across_bytes) +=
            elements_of(put->part, slicer) * element_size;
  return sum;
}

}  // namespace crosstie
