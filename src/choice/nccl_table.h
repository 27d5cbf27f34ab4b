// SPDX-License-Identifier: Apache-2.0
// NCCL's cost table as a tuner gets it, and the only way in which it is written.
#pragma once
#include <cstddef>
#include <string_view>

#include "base/words.h"

namespace crosstie {

// A view; NCCL owns the memory, for the length of one call. The two counts are the truth: a
// release may have more rows or columns than we have words for.
struct NcclCostTable {
  float* microseconds = nullptr;  // [algorithms][protocols], contiguous
  int algorithms = 0, protocols = 0;

  bool has(Algorithm algorithm, Protocol protocol) const {
    return size() > 0 && static_cast<int>(algorithm) < algorithms &&
           static_cast<int>(protocol) < protocols;
  }
  float& at(Algorithm algorithm, Protocol protocol) const {  // where has()
    return microseconds[static_cast<size_t>(algorithm) * static_cast<size_t>(protocols) +
                        static_cast<size_t>(protocol)];
  }
  // Of the entries; 0 for a table that cannot be one.
  size_t size() const {
    const bool sound = microseconds != nullptr && algorithms > 0 && algorithms <= kMostAlgorithms &&
                       protocols > 0 && protocols <= kMostProtocols;
    return sound ? static_cast<size_t>(algorithms) * static_cast<size_t>(protocols) : 0;
  }

 private:
  // More than any release has by far: larger counts are not counts.
  static constexpr int kMostAlgorithms = 64, kMostProtocols = 16;
};

// A pair that is not allowed for this collective. NCCL would run it, and hang or crash, if a
// tuner put a time there.
constexpr float kNcclIgnored = -1.0f;
// What a tuner writes for its pick, in microseconds. No collective takes a nanosecond, so every
// true time is above it; 0 and less mean different things in different releases.
constexpr float kNcclWinning = 1e-3f;

// Why no pick may be written, or empty if one may.
std::string_view untouchable(const NcclCostTable& table);

// Makes NCCL choose the pair, and returns true; leaves the table alone and returns false where
// the pair is ignored or absent, or the table untouchable. Right for both ways in which NCCL
// reads the table: least time of those >= 0 (up to 2.30), least time of the allowed (2.31).
bool make_winner(const NcclCostTable& table, Algorithm algorithm, Protocol protocol);

}  // namespace crosstie
