// SPDX-License-Identifier: Apache-2.0
// The tuner of one communicator, whatever version of NCCL's interface asked for it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "base/options.h"
#include "choice/nccl_choice.h"
#include "nccl/logger.h"
#include "nccl/options.h"

namespace crosstie::nccl {

class Tuner {
 public:
  // id: NCCL's name for the communicator, the same on all its ranks.
  Tuner(uint64_t id, const NcclCommunicator& communicator, const Environment& environment,
        Logger log);

  // On NCCL's launch path: no lock, no allocation. function: NCCL's number of the collective.
  void decide(int function, uint64_t bytes, const NcclCostTable& table);

 private:
  TunerMode read_mode(const Environment& environment) const;
  bool stands_aside(const Environment& environment) const;
  void say_once(const NcclQuestion& question, const Candidate& instead_of, const Choice& choice);

  const uint64_t id_;
  const NcclCommunicator communicator_;
  const uint64_t digest_;
  const Logger log_;
  TunerMode mode_ = TunerMode::off;
  // By collective, a bit for each power of two of the size: a changed decision is logged when
  // it is the first of its kind, so at most 5 x 64 lines are written in a communicator's life.
  std::array<std::atomic<uint64_t>, Names<Collective>::all.size()> said_{};
};

}  // namespace crosstie::nccl
