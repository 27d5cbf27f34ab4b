// SPDX-License-Identifier: Apache-2.0
// The tests' two knobs, read here alone. CROSSTIE_TEST_EFFORT, a whole number: 1, the default, is
// a representative part in little time; from 2 on matrices are whole, and random and fault tests
// run so many times as long. CROSSTIE_TEST_SEED repeats a run of random tests, which all say what
// they ran with.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace crosstie::test {

inline int effort() {
  const char* const given = std::getenv("CROSSTIE_TEST_EFFORT");
  return given ? std::max(1, std::atoi(given)) : 1;
}
inline bool whole_matrix() { return effort() > 1; }
// How often to do what is done `at_least` times at effort 1.
inline int rounds(int at_least) { return at_least * effort(); }

inline uint64_t test_seed() {
  const char* const given = std::getenv("CROSSTIE_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::fprintf(stderr, "# CROSSTIE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

using Random = std::mt19937_64;
inline Random seeded_random() { return Random(test_seed()); }

}  // namespace crosstie::test
