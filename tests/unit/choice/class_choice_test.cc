// SPDX-License-Identifier: Apache-2.0
#include "choice/class_choice.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

constexpr Candidate kRing{Algorithm::ring, Protocol::ll128, microseconds(100)};
constexpr Candidate kNvls{Algorithm::nvls, Protocol::simple, microseconds(80)};
constexpr Candidate kNvlsTree{Algorithm::nvls_tree, Protocol::simple, microseconds(70)};

CommunicatorClass with_nvls(bool nvls) {
  CommunicatorClass of;
  of.nvls = nvls;
  return of;
}

Candidate ring_of(double us) { return {Algorithm::ring, Protocol::simple, microseconds(us)}; }

}  // namespace

Test(class_choice, the_fastest_runs) {
  const Candidate all[] = {kRing, kNvls, kNvlsTree};
  cr_assert(choose_for(with_nvls(true), all, std::nullopt) == size_t{2});
  cr_assert(choose_for(with_nvls(true), all, size_t{0}) == size_t{2});
}

Test(class_choice, nccls_pick_stands_where_nothing_is_a_hundredth_faster) {
  const Candidate close[] = {ring_of(100), ring_of(100.9)};
  cr_assert(choose_for({}, close, size_t{1}) == size_t{1});
  const Candidate far[] = {ring_of(100), ring_of(101.1)};
  cr_assert(choose_for({}, far, size_t{1}) == size_t{0});
}

Test(class_choice, a_class_without_nvls_takes_neither_of_the_two_even_where_nccl_does) {
  const Candidate all[] = {kRing, kNvls, kNvlsTree};
  for (const auto nccl : {std::optional<size_t>(), std::optional<size_t>(1), {2}})
    cr_assert(choose_for(with_nvls(false), all, nccl) == size_t{0});
}

Test(class_choice, where_the_class_takes_nothing_nothing_is_chosen) {
  const Candidate all[] = {kNvls, kNvlsTree};
  cr_assert(!choose_for(with_nvls(false), all, size_t{0}));
  cr_assert(!choose_for(with_nvls(true), {}, std::nullopt));
}

Test(class_choice, why_not_tells_never_from_too_few_ranks) {
  CommunicatorClass never = with_nvls(false), few = never;
  few.policy.nvls_from_ranks = 4;
  cr_assert(!why_not(never, Algorithm::nvls).empty());
  cr_assert(why_not(never, Algorithm::nvls) != why_not(few, Algorithm::nvls));
  cr_assert(why_not(never, Algorithm::ring).empty());
  cr_assert(why_not(with_nvls(true), Algorithm::nvls_tree).empty());
}

Test(class_choice, channels_are_asked_for_only_where_nccl_would_take_no_fewer) {
  CommunicatorClass of;
  cr_assert_eq(channels_to_ask(of, 8, UINT64_MAX), 0u, "no budget");
  of.policy.channels = 8;
  const uint64_t enough = 8 * 640 * 64;  // for 8 ranks LL and Simple have the same threshold
  cr_assert_eq(channels_to_ask(of, 8, enough), 8u);
  cr_assert_eq(channels_to_ask(of, 8, enough - 8), 0u);
  cr_assert_eq(channels_to_ask(of, 16, enough), 0u, "LL's grows with the ranks");
}
