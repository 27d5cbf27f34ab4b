// SPDX-License-Identifier: Apache-2.0
// Machines that differ from one that is known in what is named: "dgx-h100:nics=8x400G,gpus=4".
#pragma once
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace crosstie {

// What may be varied: a row each.
struct Variation {
  std::string text;  // as it was written
  std::optional<uint32_t> gpus{}, nics{}, nvlinks{}, domain{};
  std::optional<Bandwidth> nic_rate{};
  std::optional<double> pcie_speed{};  // GT/s
  std::optional<CpuModel> cpu{};
  std::optional<std::string> network{};  // infiniband, roce, sockets
};

// "a:b=c" is a and what follows the colon; of text without one, all and nothing.
struct Varied {
  std::string_view name, changes;
};
Varied split_variation(std::string_view text);

// "nics=8x400G,gpus=4".
Result<Variation> parse_variation(std::string_view changes);
// "gpus=4, nics=8x400G, …": an example of each row, for help and errors.
std::string variation_examples();

// The hosts with these changes; what tells one host from others of its kind (GUIDs, cables) is left
// out. Fails where they have not what is to be varied.
Result<Topology> vary(const Topology& topology, const Variation& by);

}  // namespace crosstie
