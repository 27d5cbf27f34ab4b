// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <fmt/format.h>

namespace crosstie::test {

NamedShape hosts_of(const std::vector<uint32_t>& ranks) {
  Shape::Facts facts;
  for (uint32_t host = 0; host < ranks.size(); host++)
    facts.host_of.insert(facts.host_of.end(), ranks[host], host);
  return {fmt::format("{}", fmt::join(ranks, "+")),
          std::make_shared<const Shape>(*Shape::make(facts))};
}

NamedShape interleaved(uint32_t ranks, uint32_t hosts) {
  Shape::Facts facts;
  for (uint32_t rank = 0; rank < ranks; rank++) facts.host_of.push_back(rank % hosts);
  return {fmt::format("{} ranks interleaved on {} hosts", ranks, hosts),
          std::make_shared<const Shape>(*Shape::make(facts))};
}

std::vector<NamedShape> many_shapes() {
  std::vector<NamedShape> shapes;
  for (uint32_t n = 1; n <= 9; n++) shapes.push_back(hosts_of({n}));
  for (uint32_t n = 2; n <= 9; n++) shapes.push_back(hosts_of(std::vector<uint32_t>(n, 1)));
  for (const std::vector<uint32_t>& ranks :
       std::vector<std::vector<uint32_t>>{{4, 4},
                                          {2, 2, 2},
                                          {7, 8},
                                          {1, 7},
                                          {8, 8, 4},
                                          {7, 7, 7, 6},
                                          {1, 2, 3, 21},
                                          {2, 1, 3, 2, 1, 3},
                                          {2, 2, 2, 2, 2, 2, 2}})
    shapes.push_back(hosts_of(ranks));
  shapes.push_back(interleaved(8, 2));
  shapes.push_back(interleaved(11, 3));
  return shapes;
}

}  // namespace crosstie::test
