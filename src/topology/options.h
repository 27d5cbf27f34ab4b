// SPDX-License-Identifier: Apache-2.0
// The live probe's variables.
#pragma once
#include <array>

#include "base/options.h"

namespace crosstie {

struct TopologyOptions {
  std::string hcas;
};

inline constexpr std::array kTopologyOptions = {
    row<&TopologyOptions::hcas>(
        "CROSSTIE_HCA", "NCCL_IB_HCA", "",
        "RDMA ports to use: prefixes of names, as mlx5_0,mlx5_1:1 (port 1 only); with = before "
        "them whole names, with ^ all but these"),
};

}  // namespace crosstie
