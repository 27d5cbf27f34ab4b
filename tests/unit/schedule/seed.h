// SPDX-License-Identifier: Apache-2.0
// Random tests print the seed they ran with; CROSSTIE_TEST_SEED sets it.
#pragma once
#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <cstdlib>
#include <random>

namespace crosstie::test {

inline std::mt19937_64 seeded_random() {
  const char* given = std::getenv("CROSSTIE_TEST_SEED");
  const unsigned long long seed =
      given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  cr_log_warn("CROSSTIE_TEST_SEED=%llu", seed);
  return std::mt19937_64(seed);
}

// Of [0, most], small and large numbers alike: first a number of bits, then the bits.
inline uint64_t any_up_to(std::mt19937_64& random, uint64_t most) {
  const uint64_t bits = random() % 65;
  const uint64_t value = bits == 0 ? 0 : random() >> (64 - bits);
  return value % (most + 1);
}

}  // namespace crosstie::test
