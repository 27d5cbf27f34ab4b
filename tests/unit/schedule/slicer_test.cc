// SPDX-License-Identifier: Apache-2.0
#include "schedule/slicer.h"

#include <criterion/criterion.h>

#include "knobs.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

constexpr uint64_t kMost = uint64_t{1} << 62;
constexpr uint32_t kGranule = 16;  // elements of four bytes in a cache line

// n parts of every chunk of `count` elements follow one another without a gap and end at `count`.
void expect_partition(const Slicer& slicer, uint64_t count, uint32_t n) {
  uint64_t at = 0;
  for (uint32_t chunk = 0; chunk < slicer.chunks(); chunk++)
    for (uint32_t i = 0; i < n; i++) {
      const Range range = slicer.range(nth(i, n), chunk);
      cr_assert_eq(range.first, at, "%lu elements, part %u of %u, chunk %u", count, i, n, chunk);
      cr_assert(range.first % kGranule == 0 || range.first == count);
      cr_assert_leq(range.count, slicer.most(nth(0, n)), "%lu elements, part %u of %u, chunk %u",
                    count, i, n, chunk);
      at += range.count;
    }
  cr_assert_eq(at, count, "%lu elements in %u parts, %u chunks", count, n, slicer.chunks());
}

// Of [0, most], small and large numbers alike: first a number of bits, then the bits.
uint64_t any_up_to(Random& random, uint64_t most) {
  const uint64_t bits = random() % 65;
  const uint64_t value = bits == 0 ? 0 : random() >> (64 - bits);
  return value % (most + 1);
}

bool equal(Range a, Range b) { return a.first == b.first && a.count == b.count; }

}  // namespace

Test(slicer, parts_of_chunks_partition_the_message_at_cache_lines) {
  auto random = seeded_random();
  for (int i = 0; i < rounds(2000); i++) {
    const uint64_t count = any_up_to(random, kMost);
    const auto chunks = static_cast<uint32_t>(1 + any_up_to(random, 40));
    expect_partition(Slicer(count, 4, chunks), count, 1 + any_up_to(random, 200));
  }
}

Test(slicer, counts_at_the_edges_are_partitioned_too) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17},
                               uint64_t{1000}, (uint64_t{1} << 31) + 1, uint64_t{1} << 40, kMost})
    for (const uint32_t chunks : {1u, 2u, 3u, 64u, 1000u})
      for (const uint32_t parts : {1u, 2u, 7u, 27u, 100u})
        expect_partition(Slicer(count, 4, chunks), count, parts);
}

Test(slicer, equal_fractions_are_equal_ranges_whatever_the_denominator) {
  auto random = seeded_random();
  for (int i = 0; i < rounds(20000); i++) {
    const Slicer slicer(any_up_to(random, kMost), 4, 1 + any_up_to(random, 30));
    const auto of = static_cast<uint32_t>(1 + any_up_to(random, 1 << 14));
    const auto begin = static_cast<uint32_t>(any_up_to(random, of - 1));
    const auto end = static_cast<uint32_t>(begin + 1 + any_up_to(random, of - begin - 1));
    const auto times = static_cast<uint32_t>(1 + any_up_to(random, 1 << 14));
    const uint32_t chunk = random() % slicer.chunks();
    cr_assert(equal(slicer.range({begin, end, of}, chunk),
                    slicer.range({begin * times, end * times, of * times}, chunk)));
  }
}

Test(slicer, the_parts_of_a_part_partition_it) {
  auto random = seeded_random();
  for (int i = 0; i < rounds(2000); i++) {
    const Slicer slicer(any_up_to(random, kMost), 4, 1 + any_up_to(random, 30));
    const auto of = static_cast<uint32_t>(1 + any_up_to(random, 500));
    const Part part = nth(random() % of, of);
    const auto n = static_cast<uint32_t>(1 + any_up_to(random, 200));
    const uint32_t chunk = random() % slicer.chunks();
    const Range whole = slicer.range(part, chunk);
    uint64_t at = whole.first;
    for (uint32_t k = 0; k < n; k++) {
      const Range range = slicer.range(nth_of(part, k, n), chunk);
      cr_assert_eq(range.first, at);
      cr_assert_leq(range.count, slicer.most(nth_of(part, 0, n)));
      at += range.count;
    }
    cr_assert_eq(at, whole.first + whole.count);
  }
}

Test(slicer, parts_of_equal_length_differ_by_a_granule_at_most) {
  const Slicer slicer(1000003, 4, 3);
  for (uint32_t chunk = 0; chunk < 3; chunk++)
    for (uint32_t i = 0; i < 27; i++)
      cr_assert_geq(slicer.range(nth(i, 27), chunk).count + 2 * kGranule, slicer.most(nth(0, 27)));
}

Test(slicer, the_most_a_part_holds_never_exceeds_the_message) {
  cr_assert_eq(Slicer(0, 4, 1).most(Part{}), 0);
  cr_assert_eq(Slicer(5, 4, 3).most(nth(0, 8)), 5);
  cr_assert_eq(Slicer(kMost, 4, 1).most(Part{}), kMost);
}

Test(slicer, elements_larger_than_a_cache_line_are_not_divided) {
  const Slicer slicer(10, 256, 1);
  cr_assert_eq(slicer.range(nth(0, 10), 0).count, 1);
}
