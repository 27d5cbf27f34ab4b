// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_decision.h"

#include <criterion/criterion.h>

#include <limits>

#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

constexpr uint64_t kMiB = 1 << 20, kLarge = uint64_t{1} << 30;
constexpr Collective kAll = Collective::all_reduce;

CommunicatorClass of_channels(uint32_t channels) {
  CommunicatorClass of = any_class();
  of.policy.channels = channels;
  return of;
}

NcclDecision on_h100(const CommunicatorClass& of = any_class()) {
  return {communicator(4, 8), of, named("dgx-h100")};
}

uint32_t asked(uint32_t budget, uint64_t bytes, Table table = four_h100_nodes(kLarge)) {
  return on_h100(of_channels(budget)).choose(Collective::all_gather, bytes, table.view()).channels;
}

Choice choose(const NcclDecision& decision, uint64_t bytes, const NcclCostTable& table) {
  Choice choice = decision.choose(kAll, bytes, table);
  if (!choice.abstains()) decision.price(kAll, bytes, choice);
  return choice;
}

Table h100_table(uint64_t bytes) { return table_of(nccl_on("dgx-h100", 1, 8), kAll, bytes); }

// The fastest by the cost model, of what the table allows.
NcclPair fastest(const CostModel& cost, Table& table, uint64_t bytes) {
  std::optional<NcclPair> best;
  Seconds least{};
  for (const auto algorithm : {Algorithm::tree, Algorithm::ring, Algorithm::nvls_tree})
    for (const auto protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      if (!cost.can_run(kAll, algorithm, protocol)) continue;
      if (table.view().at(algorithm, protocol) == kNcclIgnored) continue;
      const Seconds time = cost.predict(kAll, algorithm, protocol, bytes).time();
      if (!best || time < least) best = {algorithm, protocol}, least = time;
    }
  return *best;
}

}  // namespace

Test(nccl_decision, on_a_named_system_the_fastest_by_the_cost_model_runs) {
  const NcclDecision decision = on_h100();
  const CostModel cost(published().values, *facts_of_known("dgx-h100"), {32, 4});
  for (uint64_t bytes = 8; bytes <= 8 * kLarge; bytes *= 2) {
    Table table = four_h100_nodes(bytes);
    const NcclPair pair = fastest(cost, table, bytes);
    const Choice choice = choose(decision, bytes, table.view());
    cr_assert(picks(choice, pair.algorithm, pair.protocol), "%zu", bytes);
    cr_assert(choice.candidates[0].predicted ==
              cost.predict(kAll, pair.algorithm, pair.protocol, bytes).time());
  }
}

Test(nccl_decision, nccls_own_pick_is_told_too) {
  Table table = four_h100_nodes(kMiB);
  const Choice choice = choose(on_h100(), kMiB, table.view());
  cr_assert(choice.count == 2);
  cr_assert(index_of(table, choice.candidates[1]) == runs_before_2_31(table));
}

Test(nccl_decision, what_the_table_ignores_gives_way_to_the_next) {
  const NcclDecision decision = on_h100();
  Table table = four_h100_nodes(kMiB);
  std::optional<Candidate> before;
  for (int left = 7; left > 0; left--) {
    const Choice choice = choose(decision, kMiB, table.view());
    cr_assert_not(choice.abstains());
    const Candidate& pick = choice.candidates[0];
    if (before) cr_assert(pick.predicted >= before->predicted);
    before = pick;
    table.costs[index_of(table, pick)] = kNcclIgnored;
  }
  cr_assert(choose(decision, kMiB, table.view()).abstains());
}

Test(nccl_decision, without_a_name_a_system_is_known_by_the_times_of_nccls_table) {
  const NcclDecision unnamed(communicator(1, 8), any_class(), published());
  const NcclDecision by_name(communicator(1, 8), any_class(), named("dgx-h100"));
  int decided = 0;
  for (uint64_t bytes = 8; bytes <= kLarge; bytes *= 2) {
    Table table = h100_table(bytes);
    const Choice choice = choose(unnamed, bytes, table.view());
    const Choice expected = choose(by_name, bytes, table.view());
    if (choice.abstains()) continue;
    decided++;
    cr_assert(choice.candidates[0].same(expected.candidates[0]), "%zu", bytes);
  }
  cr_assert(decided > 10, "%d", decided);
}

Test(nccl_decision, a_table_of_no_system_that_is_known_is_left_alone) {
  const NcclDecision unnamed(communicator(1, 8), any_class(), published());
  Table table = h100_table(16 * kMiB);
  cr_assert_not(choose(unnamed, 16 * kMiB, table.view()).abstains());
  table.view().at(Algorithm::tree, Protocol::simple) *= 1.001f;
  cr_assert(choose(unnamed, 16 * kMiB, table.view()).abstains());
}

// What is ignored for the type or the operation, as NVLS is for 8-bit integers, is not missed.
Test(nccl_decision, a_system_is_known_also_by_what_nccl_does_not_ignore) {
  const NcclDecision unnamed(communicator(1, 8), any_class(), published());
  Table table = h100_table(16 * kMiB);
  table.view().at(Algorithm::nvls, Protocol::simple) = kNcclIgnored;
  cr_assert_not(choose(unnamed, 16 * kMiB, table.view()).abstains());
}

// NCCL charges a group's latency for each of its operations on rings, and for each batch on others.
Test(nccl_decision, a_system_is_known_in_a_group_of_operations_too) {
  const NcclDecision unnamed(communicator(1, 8), any_class(), published());
  Table table = table_of(nccl_on("dgx-h100", 1, 8), kAll, 16 * kMiB, 3);
  cr_assert(unnamed.choose(kAll, 16 * kMiB, table.view()).abstains());
  cr_assert_not(unnamed.choose(kAll, 16 * kMiB, table.view(), 3).abstains());
}

// There a time holds the latency of the rank's own NIC.
Test(nccl_decision, on_several_nodes_no_table_names_a_system) {
  const NcclDecision unnamed(communicator(4, 8), any_class(), published());
  for (uint64_t bytes = 8; bytes <= kLarge; bytes *= 2) {
    Table table = four_h100_nodes(bytes);
    cr_assert(choose(unnamed, bytes, table.view()).abstains());
  }
}

Test(nccl_decision, constants_of_no_release_that_is_known_name_no_system) {
  Table table = h100_table(16 * kMiB);
  NcclCommunicator odd = communicator(1, 8);
  odd.constants.latency.base[0][0] *= 1.01;
  NcclCommunicator untold;
  untold.ranks = 8, untold.nodes = 1;
  for (const NcclCommunicator& of : {odd, untold})
    cr_assert(
        choose(NcclDecision(of, any_class(), published()), 16 * kMiB, table.view()).abstains());
}

Test(nccl_decision, a_class_without_nvls_gets_none) {
  const NcclCommunicator node = communicator(1, 8);
  const NcclModel nccl = nccl_on("dgx-h100", 1, 8);
  const NcclDecision with(node, any_class(), named("dgx-h100")),
      without(node, CommunicatorClass{}, named("dgx-h100"));
  int nvls = 0;
  for (uint64_t bytes = 8; bytes <= kLarge; bytes *= 2) {
    Table table = table_of(nccl, kAll, bytes);
    nvls += picks(choose(with, bytes, table.view()), Algorithm::nvls, Protocol::simple);
    const Choice choice = choose(without, bytes, table.view());
    cr_assert(!choice.abstains() && choice.candidates[0].algorithm != Algorithm::nvls);
  }
  cr_assert(nvls > 0);
}

Test(nccl_decision, a_class_that_aims_at_compute_may_have_a_slower_choice_that_spares_it) {
  CommunicatorClass sparing = any_class();
  sparing.policy.aim = Aim::compute, sparing.policy.worth = 1;
  const NcclCommunicator node = communicator(1, 8);
  const NcclModel nccl = nccl_on("dgx-h100", 1, 8);
  const NcclDecision plain(node, any_class(), named("dgx-h100"));
  const NcclDecision spares(node, sparing, named("dgx-h100"));
  bool differs = false;
  for (uint64_t bytes = 8; bytes <= kLarge; bytes *= 2) {
    Table table = table_of(nccl, kAll, bytes);
    const Candidate fast = choose(plain, bytes, table.view()).candidates[0];
    const Candidate other = choose(spares, bytes, table.view()).candidates[0];
    cr_assert(other.predicted <= 2 * fast.predicted);
    if (other.same(fast)) continue;
    differs = true;
    cr_assert(other.algorithm == Algorithm::nvls);
  }
  cr_assert(differs);
}

// Sums of 8-bit floats over more than 8 ranks: 1024 times.
Test(nccl_decision, a_ring_that_nccl_fences_off_is_not_asked_for) {
  const uint64_t bytes = 4 * kLarge;
  const NcclDecision decision(communicator(4, 8), CommunicatorClass{}, named("dgx-a100"));
  Table table = table_of(nccl_on("dgx-a100", 4, 8), kAll, bytes);
  cr_assert(picks(choose(decision, bytes, table.view()), Algorithm::ring, Protocol::simple));
  for (const auto protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    table.view().at(Algorithm::ring, protocol) *= 1024;
  const Choice choice = choose(decision, bytes, table.view());
  cr_assert(!choice.abstains() && choice.candidates[0].algorithm == Algorithm::tree);
}

Test(nccl_decision, an_algorithm_of_a_later_release_that_may_run_is_not_judged) {
  Table table = four_h100_nodes(kMiB);
  table.algorithms = 8;
  cr_assert_not(choose(on_h100(), kMiB, table.view()).abstains());
  table.costs[7 * 3] = 1e6;
  cr_assert(choose(on_h100(), kMiB, table.view()).abstains());
}

Test(nccl_decision, where_switches_of_the_network_may_reduce_the_table_is_left_alone) {
  cr_assert_not(choose(on_h100(), kMiB, four_h100_nodes(kMiB).view()).abstains());
  for (const Algorithm of : {Algorithm::collnet_chain, Algorithm::nvls}) {
    Table table = four_h100_nodes(kMiB);
    table.set(of, Protocol::simple, 1e6f);
    cr_assert(choose(on_h100(), kMiB, table.view()).abstains(), "%s", name(of).data());
  }
}

// A rank whose host has no NVSwitch is not offered CollNetDirect: the others must decide alike.
Test(nccl_decision, what_only_some_ranks_are_offered_changes_nothing) {
  for (const Collective collective : {Collective::all_gather, kAll}) {
    Table table = table_of(nccl_on("dgx-h100", 4, 8), collective, kMiB), direct = table;
    direct.set(Algorithm::collnet_direct, Protocol::simple, 20);
    const Choice without = on_h100().choose(collective, kMiB, table.view()),
                 with = on_h100().choose(collective, kMiB, direct.view());
    cr_assert(!without.abstains() && with.candidates[0].same(without.candidates[0]));
  }
}

Test(nccl_decision, over_several_nodes_a_system_without_nics_is_left_alone) {
  Profile profile = named("dgx-h100");
  profile.system->nics = 0, profile.system->network = Network::none;
  const NcclDecision decision(communicator(4, 8), any_class(), profile);
  cr_assert(choose(decision, kMiB, four_h100_nodes(kMiB).view()).abstains());
}

Test(nccl_decision, a_broken_table_is_left_alone) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), 0.0f, -5.0f}) {
    Table table = four_h100_nodes(kMiB);
    table.set(Algorithm::tree, Protocol::ll, odd);
    cr_assert(choose(on_h100(), kMiB, table.view()).abstains());
  }
  Table nothing;
  cr_assert(choose(on_h100(), kMiB, nothing.view()).abstains());
}

// NCCL 2.21 runs whatever tuner interface 2 answers.
Test(nccl_decision, without_a_table_only_what_runs_anywhere_is_picked) {
  const Choice small = choose(on_h100(), 4096, {});
  cr_assert(small.count == 1 && small.candidates[0].protocol == Protocol::ll);
  cr_assert(choose(on_h100(), kMiB, {}).abstains(), "LL128");
  cr_assert(choose(on_h100(), kLarge, {}).abstains());
  cr_assert(
      choose(NcclDecision(communicator(4, 8), any_class(), published()), kMiB, {}).abstains());
}

// 18 hosts of 4 GPUs, with the NICs of all.
Test(nccl_decision, a_node_of_several_hosts_is_known_and_has_the_nics_of_all) {
  Table table = table_of(nccl_on("gb200-nvl72", 1, 72), kAll, kLarge);
  const NcclDecision unnamed(communicator(1, 72), any_class(), published());
  cr_assert_not(choose(unnamed, kLarge, table.view()).abstains());
  const auto rack = read_synthetic("18x gb200-nvl72");
  const SystemFacts facts = model_job(rack->hosts[0].machine, 36, 4, nccl_release())->facts;
  const CostModel cost(published().values, facts, {144, 2});
  const NcclDecision by_name(communicator(2, 72), any_class(), named("gb200-nvl72"));
  const Table of_racks = table_of(nccl_on("gb200-nvl72", 2, 72), kAll, kLarge);
  const Choice choice = choose(by_name, kLarge, Table(of_racks).view());
  const Candidate& pick = choice.candidates[0];
  cr_assert(pick.predicted == cost.predict(kAll, pick.algorithm, pick.protocol, kLarge).time());
}

Test(nccl_decision, without_a_budget_channels_are_nccls) { cr_assert(asked(0, kLarge) == 0); }

// 32 ranks: a channel of NCCL's has at most 640 x 256 bytes before it takes another.
Test(nccl_decision, a_budget_is_asked_for_only_where_nccl_would_take_no_fewer) {
  cr_assert(asked(8, kLarge) == 8);
  cr_assert(asked(8, 8 * 640 * 256) == 8);
  cr_assert(asked(8, 8 * 640 * 256 - 1) == 0);
}

Test(nccl_decision, where_collnet_may_run_its_channels_are_left_alone) {
  Table table = four_h100_nodes(kLarge);
  table.set(Algorithm::collnet_chain, Protocol::simple, 1e6);
  cr_assert(asked(8, kLarge, table) == 0);
}

Test(nccl_decision, without_a_table_channels_are_left_alone) {
  cr_assert(choose(on_h100(of_channels(8)), kLarge, {}).channels == 0);
}

Test(nccl_decision, the_digest_covers_the_class_the_profile_and_nccls_constants) {
  const auto digest = [](const NcclCommunicator& of, uint32_t channels, const Profile& profile) {
    return NcclDecision(of, of_channels(channels), profile).digest();
  };
  const NcclCommunicator base = communicator(4, 8);
  NcclCommunicator other = base;
  other.constants.latency.network[1][2] += microseconds(1);
  Profile fitted = named("dgx-h100");
  fitted.values[Parameter::ll_step] *= 1.1;
  const uint64_t first = digest(base, 8, named("dgx-h100"));
  cr_assert(first == digest(base, 8, named("dgx-h100")));
  cr_assert(first != digest(base, 9, named("dgx-h100")));
  cr_assert(first != digest(base, 8, named("dgx-a100")));
  cr_assert(first != digest(base, 8, fitted));
  cr_assert(first != digest(other, 8, named("dgx-h100")));
}

Test(nccl_decision, the_digest_of_a_question_covers_everything_that_was_read) {
  const NcclDecision decision = on_h100();
  Table table = four_h100_nodes(kMiB);
  const uint64_t digest = decision.digest_of(kAll, kMiB, table.view());
  cr_assert(decision.digest_of(kAll, kMiB + 1, table.view()) != digest);
  cr_assert(decision.digest_of(Collective::reduce, kMiB, table.view()) != digest);
  for (int i = 0; i < table.size(); i++) {
    Table changed = table;
    changed.costs[i] += 1;
    cr_assert(decision.digest_of(kAll, kMiB, changed.view()) != digest);
  }
}
