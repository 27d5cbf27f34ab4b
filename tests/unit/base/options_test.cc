// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

enum class Mood : uint8_t { calm, wild };

struct Sample {
  bool flag = false;
  int number = 0;
  Mood mood = Mood::calm;
  std::chrono::nanoseconds patience{};
  Bytes room;
};

Status check(const Sample& sample) {
  if (sample.number > 100)
    return fail(Code::invalid, "CROSSTIE_NUMBER: {} is over 100", sample.number);
  return {};
}

}  // namespace

namespace crosstie {
template <>
struct Names<Mood> {
  static constexpr std::array<std::string_view, 2> all = {"calm", "wild"};
};
}  // namespace crosstie

namespace {

constexpr Option<Sample> kRows[] = {
    row<&Sample::flag>("CROSSTIE_FLAG", "", "1", "a flag"),
    row<&Sample::number>("CROSSTIE_NUMBER", "NCCL_NUMBER", "7", "a number"),
    row<&Sample::mood>("CROSSTIE_MOOD", "", "calm", "a word"),
    row<&Sample::patience>("CROSSTIE_PATIENCE", "", "250ms", "a duration"),
    row<&Sample::room>("CROSSTIE_ROOM", "", "64K", "a size"),
};

Result<Sample> read(std::map<std::string, std::string> values) {
  return read_options<Sample>(kRows, Environment(std::move(values)));
}

}  // namespace

Test(options, unset_variables_take_their_documented_defaults) {
  const auto sample = read({});
  cr_assert(sample.has_value());
  cr_assert(sample->flag && sample->number == 7 && sample->mood == Mood::calm);
  cr_assert(sample->patience == std::chrono::milliseconds(250));
  cr_assert(sample->room.count == 65536);
}

Test(options, an_alias_of_nccl_is_honoured_and_our_own_name_wins) {
  cr_assert(read({{"NCCL_NUMBER", "3"}})->number == 3);
  cr_assert(read({{"NCCL_NUMBER", "3"}, {"CROSSTIE_NUMBER", "4"}})->number == 4);
}

Test(options, a_bad_value_of_an_alias_names_the_alias_that_gave_it) {
  const auto blamed = [](std::map<std::string, std::string> values, std::string_view name) {
    return read(std::move(values)).error().text.starts_with(name);
  };
  cr_assert(blamed({{"NCCL_NUMBER", "x"}}, "NCCL_NUMBER: 'x'"));
  cr_assert(blamed({{"NCCL_NUMBER", "x"}, {"CROSSTIE_NUMBER", "y"}}, "CROSSTIE_NUMBER: 'y'"));
  cr_assert(blamed({{"NCCL_NUMBER", "101"}}, "NCCL_NUMBER: 101 is over 100"));
  cr_assert(blamed({{"CROSSTIE_NUMBER", "101"}}, "CROSSTIE_NUMBER: 101 is over 100"));
}

Test(options, an_empty_variable_counts_as_unset) {
  cr_assert(read({{"CROSSTIE_NUMBER", ""}})->number == 7);
}

Test(options, a_bad_value_names_the_variable_the_value_and_what_is_allowed) {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"CROSSTIE_FLAG", "yes"},
                                                                      {"CROSSTIE_NUMBER", "7x"},
                                                                      {"CROSSTIE_NUMBER", "foo"},
                                                                      {"CROSSTIE_MOOD", "mild"},
                                                                      {"CROSSTIE_PATIENCE", "-1s"},
                                                                      {"CROSSTIE_ROOM", "12Q"}}) {
    const auto sample = read({{name, value}});
    cr_assert_not(sample.has_value(), "%s=%s", name.c_str(), value.c_str());
    cr_assert(sample.error().text.starts_with(name));
    cr_assert(sample.error().text.find(value) != std::string::npos);
  }
  cr_assert(read({{"CROSSTIE_MOOD", "mild"}}).error().text.find("calm|wild") != std::string::npos);
}

Test(options, an_unknown_variable_is_found_with_the_nearest_name_as_a_hint) {
  std::vector<const OptionRow*> known;
  for (const auto& option : kRows) known.push_back(&option);
  const auto unknown = unknown_variables(known, Environment({{"CROSSTIE_NUMBR", "1"},
                                                             {"CROSSTIE_XYZZY", "1"},
                                                             {"HOME", "/"},
                                                             {"CROSSTIE_MOOD", "wild"}}));
  cr_assert(unknown.size() == 2);
  cr_assert(unknown[0].name == "CROSSTIE_NUMBR" && unknown[0].hint == "CROSSTIE_NUMBER");
  cr_assert(unknown[1].name == "CROSSTIE_XYZZY" && unknown[1].hint.empty());
}
