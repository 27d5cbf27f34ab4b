// SPDX-License-Identifier: Apache-2.0
// Stands in for Graphviz where it was not there when Crosstie was built.
#include "topology/format/drawing.h"

namespace crosstie {

Result<std::string> drawing(const Topology&, Picture picture) {
  return fail(Code::unsupported, "built without Graphviz: write .dot and run dot -T{}",
              name(picture));
}

}  // namespace crosstie
