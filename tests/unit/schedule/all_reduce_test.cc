// SPDX-License-Identifier: Apache-2.0
// What the schedules come to: right sums for real counts, the bytes they move, their size.
#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <chrono>

#include "knobs.h"
#include "reference_run.h"
#include "schedule/traffic.h"
#include "shapes.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// Small whole numbers, so that sums are exact in any order.
float input(uint32_t rank, uint64_t i) { return static_cast<float>((rank * 7 + i * 3) % 61); }

std::vector<std::vector<float>> inputs(uint32_t ranks, uint64_t count) {
  std::vector<std::vector<float>> all(ranks, std::vector<float>(count));
  for (uint32_t rank = 0; rank < ranks; rank++)
    for (uint64_t i = 0; i < count; i++) all[rank][i] = input(rank, i);
  return all;
}

std::vector<float> expected(uint32_t ranks, uint64_t count) {
  std::vector<float> sums(count, 0);
  for (uint32_t rank = 0; rank < ranks; rank++)
    for (uint64_t i = 0; i < count; i++) sums[i] += input(rank, i);
  return sums;
}

struct Trial {
  Algorithm algorithm;
  const NamedShape& shape;
  uint64_t count;
  uint32_t chunks;
  bool in_place;
};

void expect_right_sums(const Trial& trial, std::mt19937_64& random) {
  const Schedule schedule = all_reduce(trial.algorithm, trial.shape);
  const uint32_t ranks = schedule.frame().ranks;
  const Slicer slicer(trial.count, sizeof(float), trial.chunks);
  ReferenceRun reference(schedule, slicer, inputs(ranks, trial.count), trial.in_place, random);
  const Status ran = reference.run();
  cr_assert(ran.has_value(), "%s", ran ? "" : ran.error().text.c_str());
  const std::vector<float> sums = expected(ranks, trial.count);
  for (uint32_t rank = 0; rank < ranks; rank++)
    cr_assert(reference.out(rank) == sums,
              "%s on %s, %lu elements, %u chunks, in place %d, rank %u",
              name(trial.algorithm).data(), trial.shape.name.c_str(), trial.count, trial.chunks,
              trial.in_place, rank);
}

// Bytes that a host's ranks put to other hosts.
uint64_t across_bytes(const Schedule& schedule, const Shape& shape, uint32_t host, uint64_t count) {
  uint64_t bytes = 0;
  for (const uint32_t rank : shape.hosts()[host].ranks)
    bytes += traffic(schedule, shape, rank, Slicer(count, 4, 3), 4).across_bytes;
  return bytes;
}

size_t step_count(const Program& program) {
  size_t steps = 0;
  for (const Lane& lane : program.lanes) steps += lane.steps.size();
  return steps;
}

// Prints the best of a few times: the machine may be busy.
Program timed_program(const Schedule& schedule, uint32_t rank) {
  std::chrono::duration<double, std::milli> best{1e9};
  for (int i = 0; i < 5; i++) {
    const auto start = std::chrono::steady_clock::now();
    const Program program = schedule.program(rank);
    best = std::min<decltype(best)>(best, std::chrono::steady_clock::now() - start);
  }
  Program program = schedule.program(rank);
  cr_log_warn("%s of %u ranks: %zu steps in %.2f ms", name(schedule.frame().algorithm).data(),
              schedule.frame().ranks, step_count(program), best.count());
  return program;
}

}  // namespace

Test(all_reduce, sums_are_right_for_every_count_and_chunking) {
  auto random = seeded_random();
  for (const NamedShape& shape : many_shapes())
    for (const Algorithm algorithm : kAlgorithms)
      for (const uint64_t count : {0u, 1u, 15u, 16u, 17u, 1000u, 5000u})
        for (uint32_t chunks = 1; chunks <= 4; chunks++)
          expect_right_sums({algorithm, shape, count, chunks, random() % 2 == 0}, random);
}

Test(all_reduce, sums_of_a_million_and_one_elements_are_right) {
  auto random = seeded_random();
  for (const NamedShape& shape : {hosts_of({4, 4}), hosts_of({2, 3}), hosts_of({1, 2, 4})})
    for (const Algorithm algorithm : kAlgorithms)
      for (const bool in_place : {false, true})
        expect_right_sums({algorithm, shape, 1000001, 4, in_place}, random);
}

Test(all_reduce, a_ring_sends_the_same_bytes_out_of_every_host) {
  const NamedShape shape = hosts_of({4, 4});
  const uint64_t count = 3 * 8 * 16 * 10, message = 4 * count;
  for (uint32_t host = 0; host < 2; host++)
    cr_assert_eq(across_bytes(all_reduce(Algorithm::ring, shape), *shape.shape, host, count),
                 message * 2 * 7 / 8);
}

Test(all_reduce, the_hierarchy_sends_what_the_hosts_and_not_the_ranks_demand) {
  for (const auto& [shape, n] : {std::pair{hosts_of({4, 4}), 2u},
                                 {hosts_of({2, 2, 2}), 3u},
                                 {hosts_of({1, 2, 4, 3}), 4u},
                                 {interleaved(8, 2), 2u}}) {
    const uint64_t count = 3 * 48 * 16 * 10, message = 4 * count;  // divides by shards and hosts
    for (uint32_t host = 0; host < n; host++)
      cr_assert_eq(
          across_bytes(all_reduce(Algorithm::hierarchical, shape), *shape.shape, host, count),
          message * 2 * (n - 1) / n, "%s, host %u", shape.name.c_str(), host);
  }
}

Test(all_reduce, one_rank_a_host_leaves_the_plain_ring_and_one_host_no_ring) {
  const NamedShape singles = hosts_of({1, 1, 1, 1, 1});
  for (uint32_t rank = 0; rank < 5; rank++)
    cr_assert_eq(step_count(all_reduce(Algorithm::hierarchical, singles).program(rank)),
                 step_count(all_reduce(Algorithm::ring, singles).program(rank)));
  cr_assert_eq(all_reduce(Algorithm::hierarchical, hosts_of({5})).program(0).lanes.size(), 2);
}

// n − 1 transfers a pass, each a put, a wait and a reduction or copy; a credit, signalled and
// waited for, for every two transfers but the last four.
size_t pass_steps(size_t n) { return 3 * (n - 1) + 2 * ((n - 1 - 4 + 1) / 2); }

Test(all_reduce, a_program_of_sixteen_thousand_ranks_is_made_at_once) {
  const auto shape = std::make_shared<const Shape>(*Shape::regular(2048, 8));
  const Schedule ring = *make_schedule(Collective::all_reduce, Algorithm::ring, shape);
  cr_assert_eq(step_count(timed_program(ring, 12345)), 2 * pass_steps(16384) + 2);
  const Schedule hierarchical =
      *make_schedule(Collective::all_reduce, Algorithm::hierarchical, shape);
  const size_t inside = 7 + 7 + 1 + 3 * 7, ties = 6;
  cr_assert_eq(step_count(timed_program(hierarchical, 12345)),
               inside + 2 * pass_steps(2048) + ties);
}

Test(all_reduce, the_frame_is_the_most_that_any_rank_needs) {
  for (const NamedShape& shape : many_shapes())
    for (const Algorithm algorithm : kAlgorithms) {
      const Schedule schedule = all_reduce(algorithm, shape);
      uint32_t slots = 0, flags = 0;
      for (uint32_t rank = 0; rank < schedule.frame().ranks; rank++)
        for (const Lane& lane : schedule.program(rank).lanes)
          for (const Step& step : lane.steps) {
            if (const Put* put = std::get_if<Put>(&step)) slots = std::max(slots, put->slot + 1);
            if (const Wait* wait = std::get_if<Wait>(&step))
              flags = std::max(flags, wait->flag + 1);
          }
      cr_expect_eq(schedule.frame().slots, slots, "%s", shape.name.c_str());
      cr_expect_eq(schedule.frame().flags, flags, "%s", shape.name.c_str());
    }
}

Test(all_reduce, what_is_not_ours_is_refused_by_name) {
  const auto shape = std::make_shared<const Shape>(*Shape::regular(1, 2));
  const auto tree = make_schedule(Collective::all_reduce, Algorithm::tree, shape);
  cr_assert(!tree && tree.error().code == Code::unsupported);
  cr_assert(tree.error().text.find("tree all_reduce") != std::string::npos);
  cr_assert_not(make_schedule(Collective::broadcast, Algorithm::ring, shape).has_value());
}
