// SPDX-License-Identifier: Apache-2.0
// Stands in for Cairo where it was not there when Crosstie was built.
#include "chart.h"

namespace crosstie::tools {

Result<std::string> draw(const Chart&, Picture picture) {
  return fail(Code::unsupported, "built without Cairo, which draws .{}; write .json and plot that",
              name(picture));
}

}  // namespace crosstie::tools
