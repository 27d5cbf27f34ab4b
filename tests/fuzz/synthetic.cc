// SPDX-License-Identifier: Apache-2.0
// A name of hosts is that many hosts, or an error of one line.
#include "target.h"
#include "topology/format/formats.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto topology = read_synthetic(fuzz::text_of(data, size));
  if (!topology) {
    PROMISE(!topology.error().text.empty());
    return 0;
  }
  PROMISE(!topology->hosts.empty() && topology->hosts.size() <= 1 << 20);
  PROMISE(validate(*topology->hosts.back().machine).has_value());
  return 0;
}
