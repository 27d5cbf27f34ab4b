// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_machine_or_error(read_hwloc_xml(fuzz::text_of(data, size), "fuzz"));
  return 0;
}
