// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "knobs.h"

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

namespace {

NamedShape placed(const std::vector<uint32_t>& host_of) {
  Shape::Facts facts;
  facts.host_of = host_of;
  return {fmt::format("ranks on hosts {}", fmt::join(host_of, " ")),
          std::make_shared<const Shape>(*Shape::make(facts))};
}

// Bit i of `cuts`: a new host begins after rank i.
NamedShape divided(uint32_t ranks, uint32_t cuts) {
  std::vector<uint32_t> hosts = {1};
  for (uint32_t i = 0; i + 1 < ranks; i++)
    if (cuts >> i & 1)
      hosts.push_back(1);
    else
      hosts.back()++;
  return hosts_of(hosts);
}

std::vector<NamedShape> all_divisions(uint32_t most) {
  std::vector<NamedShape> shapes;
  for (uint32_t ranks = 1; ranks <= most; ranks++)
    for (uint32_t cuts = 0; cuts < 1u << (ranks - 1); cuts++)
      shapes.push_back(divided(ranks, cuts));
  return shapes;
}

// Up to 24 ranks, in any order on up to 8 hosts, each of which has some.
NamedShape random_shape(Random& random) {
  std::vector<uint32_t> host_of(1 + random() % 8);
  for (uint32_t host = 0; host < host_of.size(); host++) host_of[host] = host;
  const auto hosts = static_cast<uint32_t>(host_of.size());
  for (uint64_t more = random() % 17; more > 0; more--)
    host_of.push_back(static_cast<uint32_t>(random() % hosts));
  std::shuffle(host_of.begin(), host_of.end(), random);
  return placed(host_of);
}

}  // namespace

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
  if (!whole_matrix()) return shapes;
  const auto divisions = all_divisions(6);
  shapes.insert(shapes.end(), divisions.begin(), divisions.end());
  Random random = seeded_random();
  for (int i = 0; i < rounds(5); i++) shapes.push_back(random_shape(random));
  return shapes;
}

}  // namespace crosstie::test
