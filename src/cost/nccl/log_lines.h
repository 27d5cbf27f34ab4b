// SPDX-License-Identifier: Apache-2.0
// Lines of NCCL's log (NCCL_DEBUG=INFO) among a program's own: where one begins, and what of it is
// of use (NCCL 2.20 to 2.30: src/debug.cc, src/enqueue.cc, src/init.cc, src/graph/tuning.cc).
#pragma once
#include <set>
#include <string>

#include "cost/nccl/limits.h"

namespace crosstie {

struct NcclLogLine {
  size_t begin = 0;  // what is before it is the program's
  std::string_view text;
};
// "HOST:PID:THREAD [DEVICE] NCCL INFO TEXT", glued to what the program had begun to print. Of hosts
// that are known the name ends where it ends; of others it is as long as a name can be.
std::optional<NcclLogLine> find_nccl_log_line(std::string_view line,
                                              const std::set<std::string>& hosts);

// "NCCL_ALGO set by environment to Ring".
struct NcclVariable {
  std::string_view name, value;
};
std::optional<NcclVariable> variable_told(std::string_view text);

// What NCCL says under NCCL_DEBUG_SUBSYS=TUNING of each operation.
struct NcclTuned {
  std::optional<Collective> collective;  // before 2.23: not told
  uint64_t bytes = 0;
  bool of_a_rank = false;  // bytes are a rank's share, where ranks have shares: from 2.24 on
  NcclPair pair;
};
std::optional<NcclTuned> tuned_told(std::string_view text);

// "NCCL version 2.28.9+cuda12.9".
std::optional<NcclVersion> version_told(std::string_view text);
// The tuner that NCCL loaded: "TUNER/Plugin: Using crosstie (v5)".
std::optional<std::string_view> tuner_told(std::string_view text);
// NCCL's nodes, by its line on a communicator: "… nRanks 16 nNodes 2 localRanks 8 …".
std::optional<uint32_t> nodes_told(std::string_view text);

}  // namespace crosstie
