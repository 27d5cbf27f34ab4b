// SPDX-License-Identifier: Apache-2.0
// A place in a Program, for the prover's errors.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace crosstie {

struct Site {
  uint32_t rank = 0, lane = 0, step = 0;
};

inline std::string to_text(Site site) {
  return fmt::format("rank {}, lane {}, step {}", site.rank, site.lane, site.step);
}
inline std::string to_text(Site site, uint32_t chunk) {
  return fmt::format("{}, chunk {}", to_text(site), chunk);
}

}  // namespace crosstie
