// SPDX-License-Identifier: Apache-2.0
// Reads the log of outcomes that the profiler plugin writes (plugin/nccl/outcome_log.h): of each
// rank a line of JSON for each collective.
//
// A rank's time holds its wait for those that came later. So the time of a collective is that of
// the rank that waited least, by all logs together, and needs all ranks' times; those that shared a
// kernel with others, whose times overlap, are left out.
#pragma once
#include <map>
#include <tuple>

#include "cost/measurements.h"

namespace crosstie {

class OutcomeLogs {
 public:
  // Lines that cannot be read are counted. Fails where there is no other.
  Status add(std::string_view text, const std::string& file);
  // One for each collective and shape of communicator.
  std::vector<MeasuredRun> runs() const;

 private:
  using Communicator = std::string;
  using Function = std::string;  // a collective, or what else NCCL ran
  // What all ranks of an operation say of it.
  struct Call {
    uint32_t ranks = 0, nodes = 0;
    uint64_t bytes = 0;
    std::optional<Algorithm> algorithm;  // none: one of which NCCL has no model
    std::optional<Protocol> protocol;
    bool operator==(const Call&) const = default;
  };
  struct OfRank {
    uint64_t launch = 0;
    std::optional<Seconds> time;
  };
  struct Ran {
    Call call;
    size_t file = 0;
    bool contradicted = false;
    std::map<uint32_t, OfRank> of_ranks{};
  };
  struct Line {
    Communicator communicator;
    Function function;
    uint64_t sequence = 0;
    uint32_t rank = 0;
    Call call;
    OfRank own;
  };
  using Operation = std::tuple<Communicator, Function, uint64_t>;  // and its sequence
  using Launch = std::tuple<Communicator, uint32_t, uint64_t>;     // rank, launch
  using Shape = std::tuple<Function, uint32_t, uint32_t>;          // nodes, ranks

  static Line line_of(std::string_view text);  // throws what is wrong with it
  void add(const Line& line);
  std::string why_not(const Communicator& communicator, const Ran& ran) const;
  bool shared(const Communicator& communicator, const Ran& ran) const;
  MeasuredRun empty_run(const Shape& shape, size_t file) const;
  static Outcome outcome_of(uint64_t sequence, const Ran& ran);
  void tell_of_lines(MeasuredRun& run) const;

  std::vector<std::string> files_;
  std::map<Operation, Ran> ran_;
  std::map<Launch, uint32_t> in_launch_;
  Unreadable unreadable_{"line"};
  size_t repeated_ = 0;
};

}  // namespace crosstie
