// SPDX-License-Identifier: Apache-2.0
// Lists of host names as Slurm writes them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crosstie {

// "node[001-128,130],login1", "rack[1-2]node[1-4]": the names, in order; numbers keep their zeros.
// Fails on a malformed list, and on one of more than 2^20 names.
Result<std::vector<std::string>> expand_host_names(std::string_view list);

// The way back, in natural order: each is folded by the last number before its
// first dot.
std::string fold_host_names(std::vector<std::string_view> names);

}  // namespace crosstie
