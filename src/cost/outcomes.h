// SPDX-License-Identifier: Apache-2.0
// Reads the log of outcomes that the profiler plugin writes (plugin/nccl/outcome_log.h): of each
// rank a line of JSON for each collective.
//
// A rank's time holds its wait for those that came later. So the time of a collective is that of
// the rank that waited least, by all logs together; those that shared a kernel with others, whose
// times overlap, are left out.
#pragma once
#include <map>
#include <tuple>

#include "cost/measurements.h"

namespace crosstie {

class OutcomeLogs {
 public:
  // Errors say at which line.
  Status add(std::string_view text, const std::string& file);
  // One for each collective and shape of communicator.
  std::vector<MeasuredRun> runs() const;

 private:
  using Communicator = std::string;
  struct Ran {
    uint32_t ranks = 0, nodes = 0;
    uint64_t bytes = 0;
    NcclPair pair;
    std::optional<Seconds> least;
    std::vector<std::pair<uint32_t, uint64_t>> launches{};  // rank and its launch
    size_t file = 0;
  };
  using Operation = std::tuple<Communicator, Collective, uint64_t>;  // and its sequence
  using Launch = std::tuple<Communicator, uint32_t, uint64_t>;       // rank, launch

  bool shared(const Communicator& communicator, const Ran& ran) const;

  std::vector<std::string> files_;
  std::map<Operation, Ran> ran_;
  std::map<Launch, uint32_t> in_launch_;
};

}  // namespace crosstie
