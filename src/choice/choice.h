// SPDX-License-Identifier: Apache-2.0
// A decision with its runners-up and its reason. Fixed size: made on NCCL's launch path, where
// nothing may be allocated.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.h"
#include "base/words.h"

namespace crosstie {

struct Candidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  Seconds predicted{};

  bool same(const Candidate& other) const {
    return algorithm == other.algorithm && protocol == other.protocol;
  }
};

struct Choice {
  static constexpr size_t kMost = 2;  // the one to run, and what would run else

  std::array<Candidate, kMost> candidates;
  size_t count = 0;
  uint32_t channels = 0;    // at most so many, whatever runs; 0: the executor's own number
  std::string_view reason;  // static text
  // Of everything the decision read; 0 where that is to be asked for by itself.
  uint64_t digest = 0;

  std::span<const Candidate> ranked() const { return {candidates.data(), count}; }  // best first
  bool abstains() const { return count == 0; }
};

}  // namespace crosstie
