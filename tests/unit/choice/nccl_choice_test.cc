// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_choice.h"

#include <criterion/criterion.h>

#include <limits>

#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

constexpr uint64_t kMiB = 1 << 20;

Choice ask_h100(uint64_t bytes, bool nvls = true) {
  Table table = four_h100_nodes(bytes, nvls);
  return ask(communicator(4, 8), bytes, table);
}

}  // namespace

Test(nccl_choice, the_golden_tables_are_nccls) {
  Table table = four_h100_nodes(64 * kMiB);
  cr_assert_float_eq(table.view().at(Algorithm::tree, Protocol::simple), 805.74, 0.01);
  cr_assert_float_eq(table.view().at(Algorithm::ring, Protocol::simple), 734.52, 0.01);
  cr_assert_float_eq(table.view().at(Algorithm::nvls_tree, Protocol::simple), 465.81, 0.01);
}

Test(nccl_choice, nvls_tree_yields_to_a_tied_ring_or_tree_from_3_nodes_on) {
  cr_assert(picks(ask_h100(8 * kMiB), Algorithm::tree, Protocol::ll128));
  cr_assert(picks(ask_h100(512 * kMiB), Algorithm::ring, Protocol::simple));
}

Test(nccl_choice, nvls_tree_stays_where_it_is_clearly_ahead) {
  for (const uint64_t mib : {16, 64, 128, 256}) cr_assert(ask_h100(mib * kMiB).abstains());
}

Test(nccl_choice, fewer_steps_win_a_tie_where_waiting_dominates) {
  const Choice choice = ask_h100(18 * kMiB, false);
  cr_assert(picks(choice, Algorithm::tree, Protocol::ll128));
  cr_assert(picks(ask_h100(18 * kMiB, true), Algorithm::nvls_tree, Protocol::simple) == false);
}

// As in the published sweep on 4 nodes of 8 GPUs: 4 MiB, Tree/Simple 8 % behind or less.
Test(nccl_choice, more_steps_stay_where_bandwidth_dominates) {
  Table table;
  table.set(Algorithm::ring, Protocol::simple, 2187).set(Algorithm::tree, Protocol::simple, 2200);
  cr_assert(ask(communicator(4, 8), 4 * kMiB, table).abstains());
}

Test(nccl_choice, the_margin_is_a_sixteenth) {
  for (const auto& [tree, expected] : {std::pair{16.0, false}, {17.0, false}, {17.01, true}}) {
    Table table;
    table.set(Algorithm::ring, Protocol::ll, 16).set(Algorithm::tree, Protocol::ll, tree);
    // An equal time is NCCL's tree already: it comes first.
    const bool abstains = ask(communicator(4, 4), 1024, table).abstains();
    cr_assert(abstains == (expected || tree == 16.0), "%g", tree);
  }
}

// Waiting is counted from NCCL's constants: 6.6 + 24 x 0.6 + 6 x 2.7 = 37.2 us for this ring.
Test(nccl_choice, waiting_dominates_from_half_of_the_time_on) {
  for (const auto& [ring, abstains] : {std::pair{74.3, false}, {74.5, true}}) {
    Table table;
    table.set(Algorithm::ring, Protocol::ll, ring).set(Algorithm::tree, Protocol::ll, 75);
    cr_assert(ask(communicator(4, 4), 1024, table).abstains() == abstains, "%g", ring);
  }
}

// 6.6 + 14 x 5.0 us: with one rank a node NCCL charges a ring the tree's network step.
Test(nccl_choice, with_one_rank_a_node_a_ring_waits_as_long_as_a_tree) {
  Table table;
  table.set(Algorithm::ring, Protocol::ll, 150).set(Algorithm::tree, Protocol::ll, 151);
  cr_assert(picks(ask(communicator(8, 1), 1024, table), Algorithm::tree, Protocol::ll));
}

Test(nccl_choice, of_equally_many_steps_the_cheaper_wins) {
  Table table;
  table.set(Algorithm::ring, Protocol::ll, 70)
      .set(Algorithm::tree, Protocol::ll, 71)
      .set(Algorithm::tree, Protocol::ll128, 72);
  cr_assert(picks(ask(communicator(4, 4), 1024, table), Algorithm::tree, Protocol::ll));
}

// 8, 1 and 1 ranks: the tree's chain in the first node makes 2 x 7 steps of its 16, the ring 18.
Test(nccl_choice, on_unequal_nodes_the_largest_counts) {
  const NcclCommunicator of{10, 3, 1, 8, nccl_latencies()};
  Table table;
  table.set(Algorithm::ring, Protocol::ll, 40).set(Algorithm::tree, Protocol::ll, 41);
  cr_assert(picks(ask(of, 1024, table), Algorithm::tree, Protocol::ll));
  const NcclCommunicator full{10, 3, 1, 9, nccl_latencies()};
  cr_assert(ask(full, 1024, table).abstains());
}

// As tuner interfaces 2 to 4 tell it.
Test(nccl_choice, without_nccls_latencies_only_nvls_tree_yields) {
  NcclCommunicator plain;
  plain.ranks = 16, plain.nodes = 4;
  Table waiting;
  waiting.set(Algorithm::ring, Protocol::ll, 55).set(Algorithm::tree, Protocol::ll, 57);
  cr_assert_not(ask(communicator(4, 4), 65536, waiting).abstains());
  cr_assert(ask(plain, 65536, waiting).abstains());
  Table unsteady = four_h100_nodes(512 * kMiB);
  cr_assert(picks(ask(plain, 512 * kMiB, unsteady), Algorithm::ring, Protocol::simple));
}

Test(nccl_choice, small_messages_stay_with_nccls_tree) {
  for (uint64_t bytes = 1; bytes <= 64 * 1024; bytes *= 2) cr_assert(ask_h100(bytes).abstains());
}

Test(nccl_choice, one_and_two_nodes_are_left_alone) {
  for (const uint32_t nodes : {1, 2}) {
    Table table = four_h100_nodes(512 * kMiB);
    const Choice choice = ask(communicator(nodes, 8), 512 * kMiB, table);
    cr_assert(choice.abstains() && !choice.reason.empty());
  }
}

Test(nccl_choice, other_collectives_are_left_alone) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce,
                                      Collective::all_gather, Collective::reduce_scatter}) {
    Table table = four_h100_nodes(512 * kMiB);
    cr_assert(ask(communicator(4, 8), 512 * kMiB, table, collective).abstains());
  }
}

Test(nccl_choice, an_ignored_ring_is_passed_over_for_the_next_that_is_tied) {
  Table table;
  table.set(Algorithm::nvls_tree, Protocol::simple, 100)
      .set(Algorithm::collnet_chain, Protocol::simple, 101)
      .set(Algorithm::tree, Protocol::simple, 102);
  cr_assert(picks(ask(communicator(8, 8), kMiB, table), Algorithm::tree, Protocol::simple));
}

Test(nccl_choice, nccls_own_pick_is_told_too) {
  const Choice choice = ask_h100(512 * kMiB);
  cr_assert(choice.count == 2 && choice.ranked()[1].algorithm == Algorithm::nvls_tree);
}

Test(nccl_choice, an_algorithm_of_a_later_release_that_is_fastest_is_left_alone) {
  Table table = four_h100_nodes(512 * kMiB);
  table.algorithms = 8;
  table.costs[7 * 3] = 5;
  cr_assert(ask(communicator(4, 8), 512 * kMiB, table).abstains());
  table.costs[7 * 3] = 1e6;
  cr_assert_not(ask(communicator(4, 8), 512 * kMiB, table).abstains());
}

Test(nccl_choice, a_broken_table_is_left_alone) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), 0.0f, -5.0f}) {
    Table table = four_h100_nodes(512 * kMiB);
    table.set(Algorithm::tree, Protocol::ll, odd);
    cr_assert(ask(communicator(4, 8), 512 * kMiB, table).abstains());
  }
  Table nothing;
  cr_assert(ask(communicator(4, 8), 512 * kMiB, nothing).abstains());
}

Test(nccl_choice, what_nccl_never_runs_is_never_picked) {
  Table table;
  table.set(Algorithm::nvls_tree, Protocol::simple, 3.5e9)
      .set(Algorithm::ring, Protocol::simple, 3.6e9);
  cr_assert(ask(communicator(4, 8), 1 << 30, table).abstains());
}

Test(nccl_choice, the_digest_covers_everything_that_was_read) {
  const NcclCommunicator base = communicator(4, 8);
  Table table = four_h100_nodes(kMiB);
  const uint64_t digest = digest_of(base, kMiB, table);
  cr_assert(digest_of(base, kMiB, table) == digest);
  cr_assert(digest_of(base, kMiB + 1, table) != digest);
  cr_assert(digest_of(base, kMiB, table, Collective::reduce) != digest);
  cr_assert(digest_of(communicator(8, 4), kMiB, table) != digest);
  NcclCommunicator other = base;
  other.latencies.ring.network_step[0] = microseconds(2.8);
  cr_assert(digest_of(other, kMiB, table) != digest);
  other = base, other.fewest_ranks_per_domain = 7;
  cr_assert(digest_of(other, kMiB, table) != digest);
  for (int i = 0; i < table.size(); i++) {
    Table changed = table;
    changed.costs[i] += 1;
    cr_assert(digest_of(base, kMiB, changed) != digest);
  }
}
