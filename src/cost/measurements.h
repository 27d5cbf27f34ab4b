// SPDX-License-Identifier: Apache-2.0
// What tools measured of NCCL, as their logs tell it: nccl-tests' text and JSON, and the log of
// outcomes that the profiler plugin writes. What the times mean is said elsewhere.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cost/nccl/limits.h"

namespace crosstie {

// A time of one size.
struct Outcome {
  uint64_t bytes = 0;  // of the whole buffer
  Seconds time{};
  bool in_place = false;
  double wrong = 0;               // elements; 0 also where nothing was checked
  std::optional<NcclPair> ran{};  // where the log tells
  size_t line = 0;                // or which result, or which operation: see MeasuredRun::counted
};

// One start of a program of nccl-tests; of logs of outcomes, all of one collective on communicators
// of one shape.
struct MeasuredRun {
  std::string file;                        // several: the first and how many more
  size_t line = 0;                         // where it begins
  std::string_view counted = "line";       // what Outcome::line counts
  std::string program{};                   // "all_reduce_perf"; empty: not told
  std::optional<Collective> collective{};  // none: one of which NCCL has no model
  std::optional<NcclVersion> version{};
  NcclLimits limits{};
  uint32_t ranks = 0;
  uint32_t hosts = 0;   // 0: not told
  uint32_t nodes = 0;   // NCCL's; 0: not told
  uint32_t groups = 1;  // of ranks, that measured at once
  uint32_t gpus_per_process = 1;
  bool unequal_hosts = false;
  bool on_gpu = false;         // times by the GPU's clock, from a kernel's start to its end
  bool batched = false;        // operations were aggregated, or launched as graphs
  bool cpu_time = false;       // times of the CPU alone
  bool symmetric = false;      // NCCL ran its kernels for symmetric memory
  bool ended = false;          // its last lines are there
  uint64_t out_of_bounds = 0;  // of values, as its last lines say
  std::vector<Outcome> outcomes{};

  std::string where() const;                   // "ring.log"
  std::string where(const Outcome& of) const;  // "ring.log: line 12"
  std::string what() const;  // "all_reduce of 16 ranks on 2 hosts, NCCL_ALGO=Ring"
};

// What a log may not tell: NCCL's variables (NcclLimits), and collective=NAME. What it tells wins.
using ToldOfLog = std::vector<std::pair<std::string, std::string>>;
// Into the run. Fails for names and values that cannot be.
Status tell(MeasuredRun& run, const ToldOfLog& told);

}  // namespace crosstie
