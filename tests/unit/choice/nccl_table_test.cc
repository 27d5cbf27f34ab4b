// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_table.h"

#include <criterion/criterion.h>

#include <limits>

#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

Test(nccl_table, the_winner_wins_in_both_ways_of_reading_and_nothing_else_changes) {
  const Table before = four_h100_nodes(1 << 20);
  Table after = before;
  cr_assert(make_winner(after.view(), Algorithm::ring, Protocol::ll128));
  const int ring_ll128 = 1 * 3 + 1;
  cr_assert(runs_before_2_31(after) == ring_ll128);
  cr_assert(runs_from_2_31(before, after) == ring_ll128);
  for (int i = 0; i < after.size(); i++)
    cr_assert(i == ring_ll128 || after.costs[i] == before.costs[i]);
}

Test(nccl_table, an_ignored_entry_is_never_written) {
  Table table = four_h100_nodes(1 << 20);
  cr_assert_not(make_winner(table.view(), Algorithm::nvls, Protocol::ll));
  cr_assert(table.costs == four_h100_nodes(1 << 20).costs);
}

Test(nccl_table, an_entry_beyond_the_given_counts_is_not_there) {
  Table table;
  table.costs.fill(10);
  table.algorithms = 2, table.protocols = 2;
  cr_assert(make_winner(table.view(), Algorithm::ring, Protocol::ll128));
  cr_assert(table.costs[3] == kNcclWinning);
  cr_assert_not(make_winner(table.view(), Algorithm::ring, Protocol::simple));
  cr_assert_not(make_winner(table.view(), Algorithm::pat, Protocol::ll));
}

Test(nccl_table, a_release_with_more_protocols_is_read_with_its_own_stride) {
  Table table;
  table.costs.fill(10);
  table.algorithms = 8, table.protocols = 5;
  cr_assert(make_winner(table.view(), Algorithm::ring, Protocol::simple));
  cr_assert(table.costs[1 * 5 + 2] == kNcclWinning);
}

Test(nccl_table, a_table_with_an_entry_that_is_no_time_is_not_touched) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f, -2.0f,
                          -std::numeric_limits<float>::infinity(), 1e-3f, 1e-40f}) {
    Table table = four_h100_nodes(1 << 20);
    table.set(Algorithm::pat, Protocol::simple, odd);
    cr_assert_not(untouchable(table.view()).empty(), "%g", odd);
    cr_assert_not(make_winner(table.view(), Algorithm::ring, Protocol::ll), "%g", odd);
  }
}

Test(nccl_table, counts_that_are_no_counts_mean_no_table) {
  Table table = four_h100_nodes(1 << 20);
  for (const auto& [algorithms, protocols] :
       {std::pair{0, 3}, {7, 0}, {-1, 3}, {7, -3}, {-7, -3}, {1 << 30, 1 << 30}, {65, 1}}) {
    const NcclCostTable odd{table.costs.data(), algorithms, protocols};
    cr_assert(odd.size() == 0 && !untouchable(odd).empty());
    cr_assert_not(make_winner(odd, Algorithm::ring, Protocol::ll));
  }
  cr_assert_not(untouchable({nullptr, 7, 3}).empty());
}
