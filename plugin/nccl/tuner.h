// SPDX-License-Identifier: Apache-2.0
// The tuner of one communicator, whatever version of NCCL's interface asked for it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/options.h"
#include "choice/nccl_decision.h"
#include "nccl/logger.h"
#include "nccl/options.h"
#include "nccl/process.h"

namespace crosstie::nccl {

// What NCCL is to run instead of its own pick, if anything.
using Decided = std::optional<Candidate>;

class Tuner {
 public:
  // id: NCCL's name for the communicator, the same on all its ranks; interfaces before 5 tell none.
  Tuner(std::optional<uint64_t> id, const NcclCommunicator& communicator,
        const Environment& environment, Logger log);

  // On NCCL's launch path: no lock, no allocation. function: NCCL's number of the collective.
  // Writes what is decided into the table, if there is one, and the channels, if they are chosen.
  // operations: of a group, in a row.
  Decided decide(int function, uint64_t bytes, uint32_t operations, const NcclCostTable& table,
                 int* channels);

 private:
  TunerMode read_mode(const Environment& environment) const;
  void say_once(Collective collective, uint64_t bytes, const NcclCostTable& table, Choice& choice);

  const Logger log_;
  Share share_;
  const std::string name_;  // of the communicator, empty where nobody was told
  const CommunicatorClass class_;
  const TunerMode mode_;
  const std::shared_ptr<const NcclDecision> decision_;  // null: NCCL's choices stand
  // By collective, a bit for each power of two of the size: a changed decision is logged when
  // it is the first of its kind, so at most 5 x 64 lines are written in a communicator's life.
  std::array<std::atomic<uint64_t>, Names<Collective>::all.size()> said_{};
};

}  // namespace crosstie::nccl
