// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>

#include "api/options.h"
#include "nccl/options.h"
#include "runtime/options.h"
#include "transport/options.h"

namespace crosstie {

std::vector<const OptionRow*> all_options() {
  std::vector<const OptionRow*> rows;
  const auto add = [&rows](const auto& table) {
    for (const OptionRow& row : table) rows.push_back(&row);
  };
  add(kLibraryOptions);
  add(kRuntimeOptions);
  add(nccl::kTunerOptions);
  add(kTransportRows);
  std::sort(rows.begin(), rows.end(),
            [](const OptionRow* a, const OptionRow* b) { return a->name < b->name; });
  return rows;
}

}  // namespace crosstie
