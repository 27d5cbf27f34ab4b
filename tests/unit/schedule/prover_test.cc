// SPDX-License-Identifier: Apache-2.0
#include "schedule/prover.h"

#include <criterion/criterion.h>

#include "shapes.h"

using namespace crosstie;
using namespace crosstie::test;

Test(prover, ring_and_hierarchical_all_reduce_are_right_on_every_shape) {
  for (const NamedShape& shape : many_shapes())
    for (const Algorithm algorithm : kAlgorithms)
      for (const uint32_t chunks : {1u, 2u, 3u, 5u})
        for (const bool in_place : {false, true}) {
          const Status proved = prove(all_reduce(algorithm, shape), {chunks, in_place});
          cr_expect(proved.has_value(), "%s on %s, %u chunks%s: %s", name(algorithm).data(),
                    shape.name.c_str(), chunks, in_place ? ", in place" : "",
                    proved ? "" : proved.error().text.c_str());
        }
}
