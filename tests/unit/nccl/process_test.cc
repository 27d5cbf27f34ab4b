// SPDX-License-Identifier: Apache-2.0
#include "nccl/process.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "knobs.h"
#include "nccl/abi/common.h"

using namespace crosstie;
using namespace crosstie::nccl;

namespace {

Share share(std::optional<uint64_t> number, const Environment& environment = {}) {
  return Share(number, environment, Logger(nullptr, abi::kLogTuning));
}

}  // namespace

Test(process, the_tuner_knows_the_name_that_the_profiler_was_told) {
  Share profiler = share(7), tuner = share(7), other = share(8);
  profiler.tell_name("DATA_PARALLEL_GROUP:1");
  cr_assert(tuner.name() == "DATA_PARALLEL_GROUP:1");
  cr_assert(other.name().empty());
}

Test(process, the_profiler_knows_the_class_that_the_tuner_took) {
  Share profiler = share(7), tuner = share(7);
  cr_assert(profiler.traffic_class() == TrafficClass::unknown);
  tuner.tell_class(TrafficClass::dp);
  cr_assert(profiler.traffic_class() == TrafficClass::dp);
}

Test(process, ranks_of_one_process_that_are_told_one_name_have_it) {
  Share first = share(7), second = share(7), tuner = share(7);
  first.tell_name("tp"), second.tell_name("tp");
  cr_assert(tuner.name() == "tp");
}

Test(process, ranks_that_are_told_different_names_have_none_whoever_came_first) {
  for (const bool turned : {false, true}) {
    Share first = share(7), second = share(7), tuner = share(7);
    (turned ? second : first).tell_name("tp");
    (turned ? first : second).tell_name("");
    cr_assert(tuner.name().empty());
  }
}

Test(process, ranks_of_one_process_that_decide_from_different_facts_are_told_apart) {
  Share first = share(7), second = share(7), other = share(8);
  cr_assert(first.agrees_on(1) && second.agrees_on(1) && other.agrees_on(2));
  cr_assert_not(second.agrees_on(3));
}

Test(process, a_number_that_comes_again_after_the_last_share_begins_anew) {
  {
    Share old = share(7);
    old.tell_name("tp");
  }
  cr_assert(communicators_known() == 0);
  cr_assert(share(7).name().empty());
}

Test(process, without_a_number_nothing_is_known_and_nothing_is_left) {
  Share tuner = share(std::nullopt);
  tuner.tell_name("tp");
  tuner.tell_class(TrafficClass::tp);
  cr_assert(tuner.name().empty() && tuner.traffic_class() == TrafficClass::unknown);
  cr_assert(communicators_known() == 0);
}

Test(process, shares_go_in_any_order_and_leave_nothing) {
  test::Random random = test::seeded_random();
  for (int round = 0; round < test::rounds(50); round++) {
    std::vector<std::unique_ptr<Share>> shares;
    for (uint64_t i = 0; i < 60; i++)
      shares.push_back(std::unique_ptr<Share>(new Share(share(i % 13))));
    cr_assert(communicators_known() == 13);
    std::ranges::shuffle(shares, random);
    while (!shares.empty()) shares.pop_back();
    cr_assert(communicators_known() == 0);
  }
}

namespace {

Environment with_rules(const char* path) {
  return Environment(std::map<std::string, std::string>{{"CROSSTIE_CLASS_RULES", path}});
}

int lines = 0;
void count_line(abi::LogLevel, unsigned long, const char*, int, const char*, ...) { lines++; }

}  // namespace

Test(process, the_first_share_reads_the_users_rules_and_says_once_that_it_cannot) {
  const Environment environment = with_rules("/nowhere/rules.toml");
  const Logger log(count_line, abi::kLogTuning);
  const Share first(7, environment, log), second(8, environment, log);
  cr_assert(lines == 1);
  cr_assert(second.class_rules().classify("mesh_tp:3", {}).traffic == TrafficClass::tp);
}

Test(process, a_directory_is_no_rules_and_ends_nothing) {
  const Share one(7, with_rules("/"), Logger(count_line, abi::kLogTuning));
  cr_assert(lines == 1);
}

Test(process, a_file_without_end_is_no_rules_and_ends_nothing) {
  const Share one(7, with_rules("/dev/zero"), Logger(count_line, abi::kLogTuning));
  cr_assert(lines == 1);
}

// Another process may have kept a communicator, and decides by what it has read.
Test(process, files_are_read_once_though_all_communicators_go) {
  const Logger log(count_line, abi::kLogTuning);
  { const Share gone(7, Environment(), log); }
  const Share late(8, with_rules("/nowhere/rules.toml"), log);
  cr_assert(lines == 0);
}
