// SPDX-License-Identifier: Apache-2.0
// Published sweeps as measurements: which system, which job, what was run, how long it took.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/fit.h"
#include "cost/nccl/limits.h"
#include "topology/machine.h"

namespace crosstie {

struct SweepSystem {
  std::string name;
  std::vector<std::string> sweeps, variants, without;  // beginnings; parts
  SystemFacts facts;                                   // of a host's kind; NICs of one host
  std::shared_ptr<const Machine>
      machine;  // as NCCL's search sees them; none: NCCL does not run there
  uint32_t hosts_in_domain = 1, gpus_per_process = 1;
};
std::vector<SweepSystem> read_systems(const std::string& file);

// One time of one arm: the median where a sweep has it several times.
struct Measured {
  const SweepSystem* system;
  SystemFacts facts;  // of one of NCCL's nodes
  CostJob job;
  uint32_t hosts = 1;
  Collective collective;
  std::optional<Algorithm> algorithm;  // none: as NCCL chose
  std::optional<Protocol> protocol;
  bool multicast = true;  // not switched off
  std::string release;    // NCCL's, as told; may be empty
  uint64_t bytes;
  Seconds time;
  NcclPair ran;  // what was told of it, the rest by NCCL's model
};

struct Sweeps {
  std::vector<Measured> measured;
  size_t rows = 0, left_out = 0;  // of the files: all; of unknown systems, without need, or odd
};
// All .csv of a directory, in the order of their names.
Sweeps read_sweeps(const std::string& directory, const std::vector<SweepSystem>& systems);

// What NCCL's own model picks there, or ran where an arm's algorithm or protocol are told, which
// are kept to. None where NCCL does not run, or has no such pair.
const NcclModel* nccl_model_of(const Measured& of);
std::optional<NcclPair> as_run(const Measured& of);

}  // namespace crosstie
