// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

using namespace crosstie;

// In a folder that is not there, so that names of files are tried but for those from the root.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  fuzz::expect_topology_or_error(read_cluster_toml(text, "no-such-folder/fuzz.toml"));
  const auto overlay = read_overlay_toml(text);
  if (!overlay) return 0;
  const Topology host = *read_synthetic("gb200-nvl72");
  const auto laid = lay_over(*host.hosts[0].machine, *overlay);
  PROMISE(laid ? validate(laid->machine).has_value() : laid.error().code != Code::internal);
  return 0;
}
