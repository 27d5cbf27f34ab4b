// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests' programs print and what they write with -J (nccl-tests 2.19.6,
// src/common.cu and src/util.cu; the text also of its older releases).
//
// The text may come through a launcher that marks each line with its rank, and with lines of NCCL's
// log (NCCL_DEBUG=INFO) in it, which break rows in two: these tell of the release, of variables
// and, from NCCL_DEBUG_SUBSYS=TUNING on, of what ran.
#pragma once
#include <set>

#include "cost/measurements.h"

namespace crosstie {

// Errors say at which line. No run where the text is of something else.
Result<std::vector<MeasuredRun>> read_nccl_tests(std::string_view text, const std::string& file,
                                                 const ToldOfLog& told = {});
Result<std::vector<MeasuredRun>> read_nccl_tests_json(std::string_view text,
                                                      const std::string& file,
                                                      const ToldOfLog& told = {});

// What both tell of the job: its processes, each with as many ranks as it was asked for.
class NcclTestsDevices {
 public:
  void add(std::string_view host, uint64_t process, uint32_t group);
  bool empty() const { return processes_.empty(); }
  void describe(uint32_t gpus_of_process, MeasuredRun& run) const;

 private:
  std::set<std::pair<std::string, uint64_t>> processes_;
  std::set<uint32_t> groups_;
};

// "path/all_reduce_perf_mpi" measures all_reduce; none: alltoall_perf and others without a model.
std::optional<Collective> collective_of_program(std::string_view program);
// 2.28.9 of 22809, 2.7.8 of 2708.
std::optional<NcclVersion> nccl_version_of_code(uint64_t code);

}  // namespace crosstie
