// SPDX-License-Identifier: Apache-2.0
// Over shapes, sizes and tables: whatever the table, the pick is legal, runs in both of NCCL's
// ways of reading the table, and is the same for all who ask. The seed is printed.
#include <criterion/criterion.h>

#include <cstring>
#include <limits>
#include <map>

#include "knobs.h"
#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

uint64_t below(Random& random, uint64_t limit) { return random() % limit; }

// Times close to each other, so that ties are frequent, with ignored pairs between them.
Table random_table(Random& random) {
  Table table;
  const double scale = 1 + static_cast<double>(below(random, 100000));
  for (int i = 0; i < table.size(); i++)
    if (below(random, 3) != 0)
      table.costs[i] =
          static_cast<float>(scale * (1 + 0.001 * static_cast<double>(below(random, 200))));
  return table;
}

// Anything that 32 bits can say, and counts that are wrong.
Table odd_table(Random& random) {
  Table table;
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), -1,     0,      -0.0f, 1e30f, -7,
                       std::numeric_limits<float>::infinity(),  1e-45f, 3.6e9f, 50,    51,    52};
  for (float& cost : table.costs)
    cost = below(random, 4) ? odd[below(random, std::size(odd))]
                            : std::bit_cast<float>(static_cast<uint32_t>(random()));
  table.algorithms = static_cast<int>(below(random, 14)) - 2;
  table.protocols = static_cast<int>(below(random, 7)) - 1;
  if (table.size() > static_cast<int>(table.costs.size())) table.algorithms = 1;
  return table;
}

// The pick, once written, is what NCCL runs, and nothing else was written.
void check_legal(const Choice& choice, const Table& before) {
  Table after = before;
  const Candidate& pick = choice.candidates[0];
  const int index = index_of(before, pick);
  cr_assert(pick.algorithm == Algorithm::ring || pick.algorithm == Algorithm::tree);
  cr_assert(before.costs[index] != kNcclIgnored, "an ignored entry was picked");
  cr_assert(make_winner(after.view(), pick.algorithm, pick.protocol));
  cr_assert(runs_before_2_31(after) == index);
  cr_assert(runs_from_2_31(before, after) == index);
  after.costs[index] = before.costs[index];
  cr_assert(std::memcmp(&after.costs, &before.costs, sizeof after.costs) == 0,
            "something else was written");
}

// By NCCL's own model the pick costs at most 1/16 more than NCCL's.
void check_margin(const Choice& choice, const Table& table) {
  const float own = table.costs[*runs_before_2_31(table)];
  const float ours = table.costs[index_of(table, choice.candidates[0])];
  cr_assert(ours <= own * 1.0626f, "%g for %g", ours, own);
}

// Asks twice; the answer, if any, is legal. Returns whether there was one.
bool check(const NcclCommunicator& of, uint64_t bytes, Table table) {
  const Choice choice = ask(of, bytes, table), again = ask(of, bytes, table);
  cr_assert(choice.count == again.count && choice.reason == again.reason);
  cr_assert_not(choice.reason.empty());
  if (choice.abstains()) return false;
  cr_assert(of.nodes > 2);
  cr_assert(index_of(table, choice.candidates[0]) == index_of(table, again.candidates[0]));
  check_legal(choice, table);
  check_margin(choice, table);
  return true;
}

}  // namespace

Test(nccl_choice_properties, every_shape_and_size_gets_one_legal_answer_or_none) {
  Random random = seeded_random();
  int acted = 0, asked = 0;
  for (uint32_t nodes = 1; nodes <= 512; nodes++)
    for (uint32_t ranks = 1; ranks <= 8; ranks++)
      for (uint64_t bytes = 1; bytes <= uint64_t{16} << 30; bytes *= 8) {
        const NcclCommunicator of = communicator(nodes, ranks);
        acted += check(of, bytes, random_table(random)) + check(of, bytes, four_h100_nodes(bytes));
        asked += 2;
      }
  cr_assert(acted > asked / 100 && acted < asked, "acted %d of %d", acted, asked);
}

Test(nccl_choice_properties, no_table_is_too_odd) {
  Random random = seeded_random();
  for (int i = 0; i < rounds(200000); i++) {
    const auto nodes = static_cast<uint32_t>(below(random, 20));
    NcclCommunicator of = communicator(nodes, static_cast<uint32_t>(below(random, 9)));
    if (below(random, 4) == 0) of.ranks = static_cast<uint32_t>(random());
    check(of, random(), odd_table(random));
  }
}

Test(nccl_choice_properties, in_steps_of_a_hundredth_an_answer_never_leaves_the_table) {
  for (const bool nvls : {false, true})
    for (double bytes = 1; bytes < 8.6e9; bytes *= 1.01) {
      const auto whole = static_cast<uint64_t>(bytes);
      check(communicator(4, 8), whole, four_h100_nodes(whole, nvls));
    }
}

Test(nccl_choice_properties, the_order_in_which_communicators_are_made_does_not_matter) {
  using Key = std::pair<uint32_t, uint64_t>;
  const auto answers = [](bool large_first) {
    std::map<Key, std::pair<size_t, int>> all;
    for (int i = 0; i < 8; i++) {
      const uint32_t nodes = large_first ? 64u >> i : 1u << (i == 7 ? 0 : i);
      if (nodes == 0) continue;
      const NcclCommunicator of = communicator(nodes, 8);
      for (uint64_t bytes = 1024; bytes <= uint64_t{1} << 30; bytes *= 2) {
        Table table = four_h100_nodes(bytes);
        const Choice choice = ask(of, bytes, table);
        all[{nodes, bytes}] = {choice.count, index_of(table, choice.candidates[0])};
      }
    }
    return all;
  };
  cr_assert(answers(true) == answers(false));
}
