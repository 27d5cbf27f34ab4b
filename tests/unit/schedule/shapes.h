// SPDX-License-Identifier: Apache-2.0
// Shapes on which schedules are tried: equal, unequal, one host, one rank a host, interleaved.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace crosstie::test {

struct NamedShape {
  std::string name;  // "2+1": ranks of each host
  std::shared_ptr<const Shape> shape;
};

// Hosts of so many ranks each, host by host.
NamedShape hosts_of(const std::vector<uint32_t>& ranks);
// Rank r on host r mod hosts.
NamedShape interleaved(uint32_t ranks, uint32_t hosts);
// A choice of telling ones; with effort every division of up to six ranks into hosts too, and
// random ones.
std::vector<NamedShape> many_shapes();

inline constexpr Algorithm kAlgorithms[] = {Algorithm::ring, Algorithm::hierarchical};

inline Schedule all_reduce(Algorithm algorithm, const NamedShape& shape) {
  return *make_schedule(Collective::all_reduce, algorithm, shape.shape);
}

}  // namespace crosstie::test
