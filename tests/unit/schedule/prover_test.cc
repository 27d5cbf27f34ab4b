// SPDX-License-Identifier: Apache-2.0
#include "schedule/prover.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <chrono>
#include <set>
#include <utility>

#include "mutants.h"
#include "shapes.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// Unequal hosts, several shards to a rank, and rings long enough to need credits.
std::vector<std::pair<Algorithm, NamedShape>> telling_schedules() {
  return {{Algorithm::ring, hosts_of({2})},
          {Algorithm::ring, hosts_of({3})},
          {Algorithm::ring, hosts_of({4, 4})},
          {Algorithm::hierarchical, hosts_of({3})},
          {Algorithm::hierarchical, hosts_of({2, 2})},
          {Algorithm::hierarchical, hosts_of({1, 3})},
          {Algorithm::hierarchical, interleaved(5, 2)},
          {Algorithm::hierarchical, hosts_of({2, 1, 3, 1, 2, 2})}};
}

// A ring of two with one copy of its slot: the put of the next chunk needs a credit.
Program exchange_with_credit(uint32_t rank) {
  const uint32_t peer = 1 - rank;
  const Part all;
  return {{Lane{0,
                {Wait{1, 1}, Put{peer, 0, all, kIn, 0}, Wait{0, 0}, Reduce{all, kOut, 0, 2},
                 Signal{peer, 1}}}},
          {kIn, in_slot(0)}};
}

Schedule exchange() {
  Schedule::Frame frame;
  frame.ranks = 2;
  frame.slots = 1;
  frame.flags = 2;
  return {frame, exchange_with_credit};
}

void expect_error(const Schedule& schedule, const char* text, ProofOptions options = {3, false}) {
  const Status proved = prove(schedule, options);
  cr_expect(!proved.has_value() && proved.error().text.find(text) != std::string::npos,
            "expected \"%s\", got \"%s\"", text, proved ? "no error" : proved.error().text.c_str());
}

std::vector<Step>& steps(Program& program) { return program.lanes[0].steps; }

}  // namespace

Test(prover, ring_and_hierarchical_all_reduce_are_right_on_every_shape) {
  for (const NamedShape& shape : many_shapes())
    for (const Algorithm algorithm : kAlgorithms)
      for (const uint32_t chunks : {1u, 2u, 3u, 5u})
        for (const bool in_place : {false, true}) {
          const Status proved = prove(all_reduce(algorithm, shape), {chunks, in_place});
          cr_expect(proved.has_value(), "%s on %s, %u chunks%s: %s", name(algorithm).data(),
                    shape.name.c_str(), chunks, in_place ? ", in place" : "",
                    proved ? "" : proved.error().text.c_str());
        }
}

// Every step is needed too: none can be left out.
Test(prover, no_step_can_be_left_out_or_spoilt_unnoticed) {
  size_t tried = 0;
  for (const auto& [algorithm, shape] : telling_schedules()) {
    const Schedule schedule = all_reduce(algorithm, shape);
    for (uint32_t rank = 0; rank < schedule.frame().ranks; rank++)
      for (const Mutant& mutant : mutants(schedule, rank))
        for (const bool in_place : {false, true}) {
          const bool harmless = in_place ? mutant.harmless_in_place : mutant.harmless_out_of_place;
          cr_expect_eq(prove(mutant.schedule, {4, in_place}).has_value(), harmless,
                       "%s on %s, in place %d: %s", name(algorithm).data(), shape.name.c_str(),
                       in_place, mutant.name.c_str());
          tried++;
        }
  }
  cr_expect_gt(tried, 5000);
}

Test(prover, no_flag_is_raised_that_nobody_waits_for) {
  for (const NamedShape& shape : many_shapes())
    for (const Algorithm algorithm : kAlgorithms) {
      const Schedule schedule = all_reduce(algorithm, shape);
      std::set<std::pair<uint32_t, uint32_t>> raised, waited;
      for (uint32_t rank = 0; rank < schedule.frame().ranks; rank++)
        for (const Lane& lane : schedule.program(rank).lanes)
          for (const Step& step : lane.steps) {
            if (const Put* put = std::get_if<Put>(&step)) raised.emplace(put->peer, put->flag);
            if (const Signal* s = std::get_if<Signal>(&step)) raised.emplace(s->peer, s->flag);
            if (const Wait* wait = std::get_if<Wait>(&step)) waited.emplace(rank, wait->flag);
          }
      cr_expect(raised == waited, "%s on %s", name(algorithm).data(), shape.name.c_str());
    }
}

Test(prover, a_credit_with_a_lag_makes_a_slot_free_for_a_later_chunk) {
  const Status proved = prove(exchange(), {5, false});
  cr_assert(proved.has_value(), "%s", proved ? "" : proved.error().text.c_str());
  expect_error(changed(exchange(), 0, [](Program& p) { steps(p).erase(steps(p).begin()); }),
               "rank 0, lane 0, step 0, chunk 1: slot 0 of rank 1: overwrites what may still be "
               "written by rank 0, lane 0, step 0, chunk 0");
}

Test(prover, a_deadlock_names_who_waits_and_for_what) {
  const auto wait_first = [](Program& p) { std::swap(steps(p)[1], steps(p)[2]); };
  expect_error(changed(changed(exchange(), 0, wait_first), 1, wait_first),
               "rank 0, lane 0, step 1, chunk 0: waits for ever: flag 0 stays at 0, below 1");
}

Test(prover, a_flag_that_no_step_or_two_steps_raise_is_refused) {
  expect_error(changed(exchange(), 1, [](Program& p) { steps(p).pop_back(); }),
               "rank 0, lane 0, step 0: waits for flag 1, which no step raises");
  expect_error(changed(exchange(), 1,
                       [](Program& p) {
                         steps(p).push_back(Signal{0, 0});
                       }),
               "rank 1, lane 0, step 5: raises flag 0 of rank 0, as does rank 1, lane 0, step 1");
}

Test(prover, numbers_outside_the_frame_are_refused) {
  const auto put = [](Program& p) -> Put& { return std::get<Put>(steps(p)[1]); };
  expect_error(changed(exchange(), 0, [=](Program& p) { put(p).slot = 1; }), "names slot 1 of 1");
  // A Place would cut this one to slot 0.
  expect_error(changed(exchange(), 0, [=](Program& p) { put(p).slot = 1u << 24; }),
               "names slot 16777216 of 1");
  expect_error(changed(exchange(), 0, [=](Program& p) { put(p).peer = 2; }), "names rank 2 of 2");
  expect_error(changed(exchange(), 0, [=](Program& p) { put(p).flag = 2; }),
               "raises flag 2 of 2 of rank 1");
  expect_error(changed(exchange(), 0,
                       [](Program& p) {
                         steps(p)[0] = Wait{2, 0};
                       }),
               "waits for flag 2 of 2");
  expect_error(changed(exchange(), 0, [](Program& p) { p.sources.pop_back(); }),
               "reduces sources [0, +2) of 1");
}

Test(prover, parts_that_are_no_parts_or_too_long_are_refused) {
  const auto part = [](Program& p) -> Part& { return std::get<Put>(steps(p)[1]).part; };
  expect_error(changed(exchange(), 0, [=](Program& p) { part(p) = {1, 1, 2}; }), "names no part");
  expect_error(changed(exchange(), 0, [=](Program& p) { part(p) = {0, 3, 2}; }), "names no part");
  expect_error(changed(exchange(), 0,
                       [=](Program& p) {
                         part(p) = {0, 1, 2};
                       }),
               "reads [0/1, 1/1) from slot 0, which holds [0/2, 1/2)");
  Schedule::Frame frame = exchange().frame();
  frame.largest = nth(0, 2);
  expect_error({frame, exchange_with_credit}, "is longer than the frame's largest, [0/2, 1/2)");
}

Test(prover, what_must_not_be_written_is_not_written) {
  expect_error(changed(exchange(), 0, [](Program& p) { std::get<Reduce>(steps(p)[3]).to = kIn; }),
               "writes the caller's input");
}

Test(prover, a_missing_contribution_is_named) {
  expect_error(changed(exchange(), 1, [](Program& p) { std::get<Reduce>(steps(p)[3]).count = 1; }),
               "rank 1, chunk 0: [0/1, 1/1) of out lacks the contribution of rank 0");
}

// In place the exchange writes what its put may still be reading: having heard of the peer's put
// says nothing of one's own.
Test(prover, a_put_lasts_until_its_own_raise_has_been_heard_of) {
  expect_error(exchange(),
               "rank 1, lane 0, step 3, chunk 0: out [0/1, 1/1): overwrites what may still be read "
               "by rank 1, lane 0, step 1, chunk 0",
               {1, true});
}

Test(prover, sixty_four_ranks_are_proved_in_seconds) {
  const NamedShape shape = hosts_of(std::vector<uint32_t>(8, 8));
  for (const Algorithm algorithm : kAlgorithms) {
    const auto start = std::chrono::steady_clock::now();
    cr_assert(prove(all_reduce(algorithm, shape), {5, true}).has_value());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    cr_log_warn("%s: 64 ranks, 5 chunks proved in %.2f s", name(algorithm).data(), took.count());
  }
}
