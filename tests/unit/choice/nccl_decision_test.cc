// SPDX-License-Identifier: Apache-2.0
#include "choice/nccl_decision.h"

#include <criterion/criterion.h>

#include "nccl_world.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

CommunicatorClass of_channels(uint32_t channels) {
  CommunicatorClass of;
  of.policy.channels = channels;
  return of;
}

constexpr uint64_t kLarge = uint64_t{1} << 30;

uint32_t asked(uint32_t budget, uint64_t bytes, Table table = four_h100_nodes(kLarge)) {
  const NcclDecision decision(communicator(4, 8), of_channels(budget));
  return decision.choose(Collective::all_gather, bytes, table.view()).channels;
}

}  // namespace

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
  const NcclDecision decision(communicator(4, 8), of_channels(8));
  cr_assert(decision.choose(Collective::all_reduce, kLarge, {}).channels == 0);
}

Test(nccl_decision, the_digest_covers_the_class) {
  const NcclDecision one(communicator(4, 8), of_channels(8)),
      other(communicator(4, 8), of_channels(9));
  cr_assert(one.digest() != other.digest());
  cr_assert(one.digest() == NcclDecision(communicator(4, 8), of_channels(8)).digest());
}
