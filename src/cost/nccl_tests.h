// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests' programs print and what they write with -J (nccl-tests 2.19.6,
// src/common.cu and src/util.cu; the text also of its older releases).
//
// The text may come through a launcher that marks each line with its rank, and with lines of NCCL's
// log (NCCL_DEBUG=INFO) in it, which break rows in two: these tell of the release, of variables
// and, from NCCL_DEBUG_SUBSYS=TUNING on, of what ran.
#pragma once
#include <map>
#include <set>
#include <span>

#include "cost/measurements.h"

namespace crosstie {

// Errors say at which line. No run where the text is of something else.
Result<std::vector<MeasuredRun>> read_nccl_tests(std::string_view text, const std::string& file,
                                                 const ToldOfLog& told = {});
Result<std::vector<MeasuredRun>> read_nccl_tests_json(std::string_view text,
                                                      const std::string& file,
                                                      const ToldOfLog& told = {});

// What both tell of the job's ranks.
class NcclTestsDevices {
 public:
  // A line or entry, which stands for its rank and those after it. False: the rank was told before.
  bool add(uint32_t rank, uint32_t group, std::string_view host, std::string_view device);
  void describe(uint32_t ranks_of_entry, MeasuredRun& run) const;

 private:
  std::map<uint32_t, std::string> hosts_;  // of ranks
  std::set<uint32_t> groups_;
  std::set<std::string> devices_;
  std::string shared_;  // a device that two ranks say is theirs
};

// Leaves a run out where an option of its program has such a value that times are not of one
// collective on all ranks. The option by its letter: where text and JSON tell its value in another
// place, they say so here too.
void heed_option(MeasuredRun& run, char letter, int64_t value);
// A program and its options, as they were typed.
void heed_command(MeasuredRun& run, std::span<const std::string> words);

// "path/all_reduce_perf_mpi" measures all_reduce; none: alltoall_perf and others without a model.
std::optional<Collective> collective_of_program(std::string_view program);
// 2.28.9 of 22809, 2.7.8 of 2708.
std::optional<NcclVersion> nccl_version_of_code(uint64_t code);

}  // namespace crosstie
