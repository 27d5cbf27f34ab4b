// SPDX-License-Identifier: Apache-2.0
// Over shapes, systems, sizes and tables: whatever the table, the pick is legal, runs in both of
// NCCL's ways of reading the table, and is the same for all ranks, also where their CPUs differ and
// NCCL's own choices with them. The seed is printed.
#include <criterion/criterion.h>

#include <cstring>
#include <limits>

#include "knobs.h"
#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

uint64_t below(Random& random, uint64_t limit) { return random() % limit; }

// The pick, once written, is what NCCL runs, and nothing else was written.
void check_legal(const Choice& choice, const Table& before) {
  Table after = before;
  const Candidate& pick = choice.candidates[0];
  const int index = index_of(before, pick);
  cr_assert(before.costs[index] != kNcclIgnored, "an ignored entry was picked");
  cr_assert(make_winner(after.view(), pick.algorithm, pick.protocol));
  cr_assert(runs_before_2_31(after) == index);
  cr_assert(runs_from_2_31(before, after) == index);
  after.costs[index] = before.costs[index];
  cr_assert(std::memcmp(&after.costs, &before.costs, sizeof after.costs) == 0,
            "something else was written");
}

constexpr int kNoTable = 1000;  // there was a pick, but nowhere to write it

// The picked entry's index, or -1.
int answer(const NcclDecision& decision, Collective collective, uint64_t bytes, Table table) {
  const Choice choice = decision.choose(collective, bytes, table.view());
  cr_assert_not(choice.reason.empty());
  if (choice.abstains()) return -1;
  if (table.view().size() == 0) return kNoTable;
  check_legal(choice, table);
  return index_of(table, choice.candidates[0]);
}

struct Asked {
  int answers = 0, decided = 0, nccl_torn = 0;
};

// As ranks of one communicator whose hosts have CPUs of two vendors: one answer, or none on both.
void check_both_vendors(const NcclDecision& decision, const NcclModel& nccl, Asked& asked) {
  const NcclModel intel = seen_from(NcclCpu::intel, nccl), amd = seen_from(NcclCpu::amd, nccl);
  for (const auto collective : {Collective::all_reduce, Collective::all_gather,
                                Collective::reduce_scatter, Collective::broadcast})
    for (double size = 1; size < 8.6e9; size = std::max(size + 1, size * 1.01)) {
      const auto bytes = static_cast<uint64_t>(size);
      const Table one = table_of(intel, collective, bytes),
                  other = table_of(amd, collective, bytes);
      const int first = answer(decision, collective, bytes, one);
      cr_assert(first == answer(decision, collective, bytes, other), "%zu bytes", bytes);
      asked.answers++, asked.decided += first >= 0;
      asked.nccl_torn += runs_before_2_31(one) != runs_before_2_31(other);
    }
}

Asked check_system(std::string_view machine, uint32_t nodes, uint32_t ranks_per_node) {
  Asked asked;
  const NcclModel nccl = nccl_on(machine, nodes, ranks_per_node);
  const NcclCommunicator of = communicator(nodes, ranks_per_node);
  check_both_vendors(NcclDecision(of, any_class(), published()), nccl, asked);
  check_both_vendors(NcclDecision(of, any_class(), named(machine)), nccl, asked);
  return asked;
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

}  // namespace

// From 1 byte to 8 GiB in steps of a hundredth; A100 and H100, Intel's and AMD's ranks.
Test(nccl_agreement, ranks_of_two_vendors_cpus_get_one_answer_or_none, .timeout = 300) {
  Asked all;
  for (const std::string_view machine : {"dgx-a100", "dgx-h100"})
    for (const auto& [nodes, ranks] : {std::pair{1u, 8u}, {2u, 8u}, {4u, 8u}, {16u, 1u}}) {
      const Asked asked = check_system(machine, nodes, ranks);
      all.answers += asked.answers, all.decided += asked.decided;
      all.nccl_torn += asked.nccl_torn;
    }
  fmt::print("{} questions, {} decided; NCCL's own picks differ in {}\n", all.answers, all.decided,
             all.nccl_torn);
  cr_assert(all.decided > all.answers / 3);
  cr_assert(all.nccl_torn > 0, "the tables of both vendors are the same: this shows nothing");
}

// A100s and H100s in one communicator: NCCL takes the lesser capability for all.
Test(nccl_agreement, on_a_named_system_times_do_not_matter) {
  Random random = seeded_random();
  const NcclDecision decision(communicator(4, 8), any_class(), named("dgx-h100"));
  for (double size = 1; size < 8.6e9; size = std::max(size + 1, size * 1.1)) {
    const auto bytes = static_cast<uint64_t>(size);
    Table table = four_h100_nodes(bytes);
    const int expected = answer(decision, Collective::all_reduce, bytes, table);
    for (float& cost : table.costs)
      if (cost != kNcclIgnored) cost = 10 * (1 + static_cast<float>(below(random, 60)));
    cr_assert(answer(decision, Collective::all_reduce, bytes, table) == expected);
  }
}

Test(nccl_agreement, no_table_is_too_odd) {
  Random random = seeded_random();
  const NcclDecision decisions[] = {{communicator(4, 8), any_class(), named("dgx-h100")},
                                    {communicator(4, 8), any_class(), published()},
                                    {NcclCommunicator{}, any_class(), named("dgx-h100")}};
  for (int i = 0; i < rounds(100000); i++)
    answer(decisions[below(random, 3)], static_cast<Collective>(below(random, kNcclCollectives)),
           random() >> below(random, 64), odd_table(random));
}

Test(nccl_agreement, no_shape_is_too_odd) {
  Random random = seeded_random();
  for (int i = 0; i < rounds(100); i++) {
    NcclCommunicator of = communicator(static_cast<uint32_t>(random() >> below(random, 64)),
                                       static_cast<uint32_t>(below(random, 9)));
    if (below(random, 2)) of.ranks = static_cast<uint32_t>(random());
    if (below(random, 2)) of.most_ranks_per_domain = static_cast<uint32_t>(random());
    const NcclDecision decision(of, any_class(), named("dgx-h100"));
    answer(decision, Collective::all_reduce, random() >> below(random, 64), odd_table(random));
  }
}
