// SPDX-License-Identifier: Apache-2.0
// Facts of a system as a table of a TOML file:
//
//   compute_capability = 90
//   gpu_link = "nvlink4"
//   gpu_gigabytes = 450       # a second, one way, of all links of one GPU
//   gpus = 8                  # of a host
//   multicast = true          # false where not told
//   cpu = "intel"             # "other" where not told
//   network = "infiniband"    # none where not told, and no NICs then
//   nics = 8                  # of a host
//   nic_gigabits = 400        # a second, of one NIC
//   nics_behind_cpu = false   # so where not told
#pragma once
#include <string>

#include "base/toml.h"
#include "cost/system_facts.h"

namespace crosstie {

Result<SystemFacts> read_facts(const toml::table& in);
std::string write_facts(const SystemFacts& facts);

}  // namespace crosstie
