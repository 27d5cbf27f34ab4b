// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

namespace crosstie {

Result<Schedule> make_schedule(Collective collective, Algorithm algorithm,
                               std::shared_ptr<const Shape> shape) {
  if (collective == Collective::all_reduce) {
    if (algorithm == Algorithm::ring) return ring_all_reduce(std::move(shape));
    if (algorithm == Algorithm::hierarchical) return hierarchical_all_reduce(std::move(shape));
  }
  return fail(Code::unsupported,
              "crosstie has no {} {} of its own; it runs all_reduce by ring or hierarchical",
              name(algorithm), name(collective));
}

}  // namespace crosstie
