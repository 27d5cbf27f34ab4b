// SPDX-License-Identifier: Apache-2.0
// What the parts of `crosstie bench` hand to each other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"

namespace crosstie::tools {

struct BenchOptions {
  uint64_t min_bytes = 8, max_bytes = 64 << 20;
  int factor = 2, iterations = 20, warmup = 5;
  std::vector<std::string> algorithms = {"auto"};
  bool json = false;
};

// This process as one rank: measures and, as rank 0, prints. An Exit.
int bench_allreduce(const BenchOptions& options, const Log& log);

// Starts local processes, one a rank, with host boundaries drawn by hand: ranks_of_host[h] ranks
// on emulated host h. Each runs `rank`; the result is the worst of their exit codes.
int run_local_ranks(const std::vector<int>& ranks_of_host, const std::function<int()>& rank,
                    const Log& log);

}  // namespace crosstie::tools
