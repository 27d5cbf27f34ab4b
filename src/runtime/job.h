// SPDX-License-Identifier: Apache-2.0
// Where this process stands in its job, as launchers tell it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/options.h"
#include "runtime/options.h"

namespace crosstie {

struct Job {
  int rank = 0, ranks = 1;
  std::string address;  // host name or address of rank 0
  uint16_t port = 0;    // the first of kPorts that rank 0 tries
  uint64_t id = 0;      // digest that keeps jobs apart which meet at one address

  // Twice the largest clusters. Notifications bind: their 18 bits tell apart some two flags a rank
  // (engine.cc).
  static constexpr int kMostRanks = 1 << 17;
  // Rank 0 takes the first free port of so many from `port` on; the others try them in turn.
  static constexpr uint16_t kPorts = 8;
};

// From the options; else RANK and WORLD_SIZE (torchrun); else Open MPI's, PMI's, Slurm's
// variables; else a job of one. The address likewise, apart: MASTER_ADDR and MASTER_PORT serve
// every launcher.
Result<Job> find_job(const RuntimeOptions& options, const Environment& environment);

// The job's part on this host, as its launcher tells; none where nothing tells it from other jobs.
struct LocalJob {
  uint64_t id = 0;
  int ranks = 0;  // of this host; 0: the launcher does not tell
};
std::optional<LocalJob> find_local_job(const Environment& environment);

// "node[003-005,9]-ib,b" → "node003-ib": the first name of a Slurm node list.
std::string first_host(std::string_view nodelist);

}  // namespace crosstie
