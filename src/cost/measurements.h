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
  double wrong = 0;                 // elements; 0 also where nothing was checked
  std::optional<NcclPair> ran{};    // where the log tells
  std::string type{}, operation{};  // as nccl-tests spells them: "half", "max"; empty: not told
  size_t line = 0;                  // or which result, or which operation: see MeasuredRun::counted
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
  std::string tuner{};  // a plugin that NCCL loaded, which may have chosen; empty: NCCL chose
  uint32_t ranks = 0;
  uint32_t hosts = 0;  // 0: not told
  uint32_t nodes = 0;  // NCCL's; 0: not told
  uint32_t gpus_per_process = 1;
  bool on_gpu = false;         // times by the GPU's clock, from a kernel's start to its end
  bool ended = false;          // its last lines are there
  uint64_t out_of_bounds = 0;  // of values, as its last lines say
  std::string unfit{};         // why its times are not what the model is of; empty: they are
  std::vector<Outcome> outcomes{};
  std::vector<std::string> skipped{};  // what is not in outcomes: how much, and why

  void leave_out(std::string_view why);        // one reason is enough
  std::string where() const;                   // "ring.log"
  std::string where(const Outcome& of) const;  // "ring.log: line 12"
  std::string what() const;  // "all_reduce of 16 ranks on 2 hosts, NCCL_ALGO=Ring"
};

// What of a log cannot be read: how much, and what is wrong with the first.
class Unreadable {
 public:
  // kind: "row"; where: "line 12".
  explicit Unreadable(std::string_view kind) : kind_(kind) {}
  void see(std::string_view where, std::string_view what);
  void tell(MeasuredRun& run) const;

 private:
  std::string_view kind_;
  size_t count_ = 0;
  std::string first_;
};

// What a log may not tell: NCCL's variables (NcclLimits), and collective=NAME. What it tells wins.
using ToldOfLog = std::vector<std::pair<std::string, std::string>>;
// Variables into the run. Fails for names and values that cannot be.
Status tell(MeasuredRun& run, const ToldOfLog& told);
// Of collective=NAME the program, "all_reduce_perf"; empty: not told.
std::string program_told(const ToldOfLog& told);

}  // namespace crosstie
