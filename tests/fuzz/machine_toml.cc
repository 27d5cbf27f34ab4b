// SPDX-License-Identifier: Apache-2.0
// Whatever the TOML says, it is a machine that keeps its promises and can be shown, or an error.
#include "target.h"
#include "topology/format/formats.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto machine = read_machine_toml(fuzz::text_of(data, size), "fuzz");
  if (!machine) {
    PROMISE(!machine.error().text.empty());
    return 0;
  }
  PROMISE(validate(*machine).has_value());
  const Topology topology = single_host(std::move(*machine));
  PROMISE(!tree_text(topology).empty() && !json_text(topology).empty());
  return 0;
}
