// SPDX-License-Identifier: Apache-2.0
#include "choice/class_choice.h"

#include <criterion/criterion.h>

#include <algorithm>

using namespace crosstie;

namespace {

Prediction of(double steps, double bytes) {
  Prediction prediction;
  prediction.add("steps across", microseconds(steps), "");
  prediction.add("bytes across", microseconds(bytes), "");
  return prediction;
}

// A and B, both of a ring but where said: which is wanted more.
bool first_is_wanted(Aim aim, double worth, const Prediction& a, const Prediction& b,
                     Algorithm algorithm_of_b = Algorithm::ring) {
  ClassPolicy policy;
  policy.aim = aim, policy.worth = worth;
  const Seconds least = std::min(a.time(), b.time());
  return preference(policy, Algorithm::ring, a, least) <
         preference(policy, algorithm_of_b, b, least);
}

CommunicatorClass with_nvls(bool nvls) {
  CommunicatorClass of;
  of.nvls = nvls;
  return of;
}

}  // namespace

Test(class_choice, without_a_worth_the_fastest_is_wanted) {
  for (const Aim aim : {Aim::time, Aim::latency, Aim::bandwidth, Aim::compute}) {
    cr_assert(first_is_wanted(aim, 0, of(10, 90), of(1, 100), Algorithm::nvls));
    cr_assert(first_is_wanted(aim, 0, of(90, 10), of(100, 1), Algorithm::nvls));
  }
}

Test(class_choice, within_its_worth_the_aim_is_served) {
  const Prediction waits = of(60, 40), carries = of(20, 84);  // 100 and 104 us
  cr_assert(first_is_wanted(Aim::time, 0.05, waits, carries));
  cr_assert(first_is_wanted(Aim::bandwidth, 0.05, waits, carries));
  cr_assert_not(first_is_wanted(Aim::latency, 0.05, waits, carries));
  cr_assert(first_is_wanted(Aim::latency, 0.03, waits, carries), "4 % are more than 3");
  cr_assert_not(first_is_wanted(Aim::compute, 0.05, waits, carries, Algorithm::nvls));
  cr_assert(first_is_wanted(Aim::compute, 0.05, waits, carries, Algorithm::tree));
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
