// SPDX-License-Identifier: Apache-2.0
#include "nccl/process.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "knobs.h"

using namespace crosstie;
using namespace crosstie::nccl;

Test(process, the_tuner_knows_the_name_that_the_profiler_was_told) {
  Share profiler(7), tuner(7), other(8);
  profiler.tell_name("DATA_PARALLEL_GROUP:1");
  cr_assert(tuner.name() == "DATA_PARALLEL_GROUP:1");
  cr_assert(other.name().empty());
}

Test(process, the_profiler_knows_the_class_that_the_tuner_took) {
  Share profiler(7), tuner(7);
  cr_assert(profiler.traffic_class() == TrafficClass::unknown);
  tuner.tell_class(TrafficClass::dp);
  cr_assert(profiler.traffic_class() == TrafficClass::dp);
}

Test(process, ranks_of_one_process_that_are_told_one_name_have_it) {
  Share first(7), second(7), tuner(7);
  first.tell_name("tp"), second.tell_name("tp");
  cr_assert(tuner.name() == "tp");
}

Test(process, ranks_that_are_told_different_names_have_none_whoever_came_first) {
  for (const bool turned : {false, true}) {
    Share first(7), second(7), tuner(7);
    (turned ? second : first).tell_name("tp");
    (turned ? first : second).tell_name("");
    cr_assert(tuner.name().empty());
  }
}

Test(process, a_number_that_comes_again_after_the_last_share_begins_anew) {
  {
    Share old(7);
    old.tell_name("tp");
  }
  cr_assert(communicators_known() == 0);
  cr_assert(Share(7).name().empty());
}

Test(process, without_a_number_nothing_is_known_and_nothing_is_left) {
  Share tuner(std::nullopt);
  tuner.tell_name("tp");
  tuner.tell_class(TrafficClass::tp);
  cr_assert(tuner.name().empty() && tuner.traffic_class() == TrafficClass::unknown);
  cr_assert(communicators_known() == 0);
}

Test(process, shares_go_in_any_order_and_leave_nothing) {
  test::Random random = test::seeded_random();
  for (int round = 0; round < test::rounds(50); round++) {
    std::vector<std::unique_ptr<Share>> shares;
    for (uint64_t i = 0; i < 60; i++) shares.push_back(std::make_unique<Share>(i % 13));
    cr_assert(communicators_known() == 13);
    std::ranges::shuffle(shares, random);
    while (!shares.empty()) shares.pop_back();
    cr_assert(communicators_known() == 0);
  }
}
