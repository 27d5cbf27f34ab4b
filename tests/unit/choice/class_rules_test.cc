// SPDX-License-Identifier: Apache-2.0
#include "choice/class_rules.h"

#include <criterion/criterion.h>

#include "knobs.h"

using namespace crosstie;

namespace {

constexpr CommunicatorShape kAny{16, 2, 8, 8};

TrafficClass built_in(std::string_view name, const CommunicatorShape& shape = kAny) {
  return ClassRules::built_in().classify(name, shape).traffic;
}

// The user's rules, with the schema that they need.
ClassRules with(std::string_view text) {
  const auto rules = ClassRules::built_in().with(fmt::format("schema = 1\n{}", text), "rules.toml");
  cr_assert(rules, "%s", rules ? "" : rules.error().text.c_str());
  return *rules;
}

std::string error_of(std::string_view text) {
  const auto rules = ClassRules::built_in().with(text, "rules.toml");
  cr_assert_not(rules);
  return rules.error().text;
}

}  // namespace

Test(class_rules, a_pattern_has_stars_and_question_marks_and_nothing_else) {
  for (const auto& [pattern, name] : {std::pair{"", ""},
                                      {"*", ""},
                                      {"*", "x"},
                                      {"a*c", "ac"},
                                      {"a*c", "abcbc"},
                                      {"a?c", "abc"},
                                      {"*a*b*", "xaybz"},
                                      {"[a]", "[a]"},
                                      {"**", "ab"},
                                      {"a\\*", "a\\b"}})
    cr_assert(matches(pattern, name), "%s %s", pattern, name);
  for (const auto& [pattern, name] : {std::pair{"", "x"},
                                      {"?", ""},
                                      {"a*c", "acb"},
                                      {"a", "A"},
                                      {"a?c", "ac"},
                                      {"*a*b", "bba"},
                                      {"[a]", "a"}})
    cr_assert_not(matches(pattern, name), "%s %s", pattern, name);
}

Test(class_rules, a_long_name_against_many_stars_takes_no_time) {
  const std::string name(20000, 'a');
  cr_assert_not(matches("*a*a*a*a*a*a*a*a*a*a*b", name));
}

Test(class_rules, megatrons_groups_have_their_classes) {
  cr_assert(built_in("TENSOR_MODEL_PARALLEL_GROUP:0") == TrafficClass::tp);
  cr_assert(built_in("DATA_PARALLEL_GROUP:1") == TrafficClass::dp);
  cr_assert(built_in("PIPELINE_MODEL_PARALLEL_GROUP:2") == TrafficClass::pp);
  cr_assert(built_in("DATA_PARALLEL_GROUP_WITH_CP:17") == TrafficClass::dp);
  cr_assert(built_in("CONTEXT_PARALLEL_GROUP") == TrafficClass::cp);
  cr_assert(built_in("HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0:3") == TrafficClass::cp);
  cr_assert(built_in("HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1:3") == TrafficClass::dp);
  cr_assert(built_in("EXPERT_MODEL_PARALLEL_GROUP:3") == TrafficClass::ep);
  cr_assert(built_in("EMBEDDING_GROUP:3") == TrafficClass::dp);
  cr_assert(built_in("MODEL_PARALLEL_GROUP:3") == TrafficClass::control);
}

Test(class_rules, dimensions_of_a_device_mesh_have_their_classes) {
  cr_assert(built_in("mesh_tp:5") == TrafficClass::tp);
  cr_assert(built_in("mesh_dp_shard_cp:5") == TrafficClass::dp);
  cr_assert(built_in("mesh_dp_replicate:5") == TrafficClass::dp);
  cr_assert(built_in("mesh_pp:5") == TrafficClass::pp);
}

Test(class_rules, what_no_rule_knows_is_unknown) {
  for (const char* name : {"", "default_pg:0", "undefined:12", "mesh_dim_0:1", ":", "tp2",
                           "X_TENSOR_MODEL_PARALLEL_GROUP:0"})
    cr_assert(built_in(name) == TrafficClass::unknown, "%s", name);
}

Test(class_rules, by_shape_alone_nothing_is_guessed) {
  for (const uint32_t ranks : {1, 2, 8, 64})
    for (const uint32_t nodes : {1, 2, 8})
      cr_assert(built_in("", {ranks, nodes, 1, 8}) == TrafficClass::unknown);
}

Test(class_rules, the_users_rules_come_first_and_the_first_that_fits_wins) {
  const ClassRules rules = with(R"(
[[rule]]
class = "ep"
names = ["*PARALLEL_GROUP:7", "moe*"]
[[rule]]
class = "cp"
names = ["moe:1"]
)");
  cr_assert(rules.classify("DATA_PARALLEL_GROUP:7", kAny).traffic == TrafficClass::ep);
  cr_assert(rules.classify("moe:1", kAny).traffic == TrafficClass::ep);
  cr_assert(rules.classify("DATA_PARALLEL_GROUP:8", kAny).traffic == TrafficClass::dp);
}

Test(class_rules, a_rule_by_shape_matches_within_its_ranges) {
  const ClassRules rules = with(R"(
[[rule]]
class = "tp"
ranks = "2-8"
nodes = 1
[[rule]]
class = "dp"
nodes = "16-"
ranks_per_node = "-1"
)");
  const auto of = [&](CommunicatorShape shape) { return rules.classify("", shape).traffic; };
  cr_assert(of({2, 1, 2, 2}) == TrafficClass::tp && of({8, 1, 8, 8}) == TrafficClass::tp);
  cr_assert(of({1, 1, 1, 1}) == TrafficClass::unknown && of({9, 1, 9, 9}) == TrafficClass::unknown);
  cr_assert(of({8, 2, 4, 4}) == TrafficClass::unknown);
  cr_assert(of({16, 16, 1, 1}) == TrafficClass::dp);
  cr_assert(of({17, 16, 1, 2}) == TrafficClass::unknown);
}

// Tuner interfaces 2 to 4 do not tell the ranks of a node.
Test(class_rules, ranks_per_node_that_are_not_told_match_no_range_from_one_on) {
  const ClassRules rules = with("[[rule]]\nclass = \"tp\"\nranks_per_node = \"1-8\"\n");
  cr_assert(rules.classify("", {8, 1, 8, 8}).traffic == TrafficClass::tp);
  cr_assert(rules.classify("", {8, 1, 0, 0}).traffic == TrafficClass::unknown);
}

Test(class_rules, the_users_policy_wins_key_by_key) {
  const ClassRules rules = with("[policy.dp]\nchannels = 8\nservice_level = 3\n");
  const ClassPolicy dp = rules.classify("mesh_dp:0", kAny).policy;
  cr_assert(dp.channels == 8 && dp.service_level == 3);
  cr_assert(dp.aim == Aim::compute && dp.nvls_from_ranks == 4 && dp.traffic_class == -1);
  cr_assert(rules.classify("mesh_tp:0", kAny).policy.channels == 0);
}

Test(class_rules, communicators_of_two_ranks_never_take_multicast_slots) {
  const ClassRules rules = ClassRules::built_in();
  for (const char* name : {"", "mesh_tp:0", "mesh_dp:0", "mesh_pp:0", "mesh_ep:0"})
    for (uint32_t i = 0; i < 200; i++)
      cr_assert_not(rules.classify(fmt::format("{}{}", name, i), {2, 1, 2, 2}).nvls);
  cr_assert(rules.classify("mesh_tp:0", {8, 1, 8, 8}).nvls);
  cr_assert(rules.classify("", {8, 1, 8, 8}).nvls);
  cr_assert_not(rules.classify("mesh_pp:0", {8, 1, 8, 8}).nvls);
  cr_assert_not(rules.classify("mesh_tp:0", {9, 2, 1, 8}).nvls);
  cr_assert_not(rules.classify("mesh_tp:0", {8, 1, 0, 0}).nvls);
}

Test(class_rules, the_reason_names_file_and_line) {
  const auto of = [](const ClassRules& rules, std::string_view name) {
    return rules.classify(name, kAny).reason;
  };
  cr_assert(of(with("[[rule]]\nclass = \"tp\"\n"), "x") == "rules.toml line 2");
  cr_assert(of(ClassRules::built_in(), "x") == "no rule");
  cr_assert(of(ClassRules::built_in(), "mesh_tp:1").starts_with("built-in rules line "));
}

Test(class_rules, every_mistake_is_one_line_that_names_the_place) {
  for (const auto& [text, says] :
       {std::pair{"", "rules.toml: line 1: 'schema' is needed"},
        {"schema = 2", "rules.toml: line 1: the schema is not 1"},
        {"schema = 1\nrules = 3", "has no key 'rules'"},
        {"schema = 1\n[[rule]]\nnames = [\"x\"]", "'class' is needed"},
        {"schema = 1\n[[rule]]\nclass = \"zp\"", "'zp' is none of unknown, tp"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nname = \"x\"", "has no key 'name'"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nnames = \"x\"", "'names' must be a list"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nnames = [1]", "line 4: a name is text"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nranks = \"8-2\"", "'ranks' must be a number"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nranks = \"-\"", "'ranks' must be a number"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nranks = \"1-x\"", "'ranks' must be a number"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nranks = 0", "'ranks' must be from 1"},
        {"schema = 1\n[[rule]]\nclass = \"tp\"\nranks = 2.5", "'ranks' is of the wrong type"},
        {"schema = 1\n[policy.xx]\naim = \"time\"", "'policy.xx' is not the table of a class"},
        {"schema = 1\n[policy.tp]\naim = \"speed\"", "'speed' is none of time"},
        {"schema = 1\n[policy.tp]\nchannels = 65", "'channels' must be from 0 to 64"},
        {"schema = 1\n[policy.tp]\nsl = 6", "a policy has no key 'sl'"},
        {"schema = 1\npolicy = 3", "policy must be a table"},
        {"schema = 1\nrule = 3", "'rule' must be a list"},
        {"schema = [", "rules.toml: line 1: "}}) {
    const std::string error = error_of(text);
    cr_assert(error.find(says) != std::string::npos, "%s: %s", text, error.c_str());
    cr_assert(error.find('\n') == std::string::npos, "%s", error.c_str());
  }
}

Test(class_rules, the_digest_covers_class_policy_and_nvls) {
  const ClassRules rules = ClassRules::built_in();
  const uint64_t digest = rules.classify("mesh_tp:0", kAny).digest();
  cr_assert(digest == rules.classify("mesh_tp:9", kAny).digest());
  cr_assert(digest != rules.classify("mesh_dp:0", kAny).digest());
  cr_assert(digest != rules.classify("mesh_tp:0", {2, 1, 2, 2}).digest());
  cr_assert(digest != with("[policy.tp]\nchannels = 4").classify("mesh_tp:0", kAny).digest());
}

Test(class_rules, no_text_ends_the_reader) {
  test::Random random = test::seeded_random();
  const std::string_view whole = known_class_rules().front().toml;
  for (int i = 0; i < test::rounds(300); i++) {
    std::string text(whole.substr(0, random() % whole.size()));
    for (int n = 0; n < 3 && !text.empty(); n++)
      text[random() % text.size()] = static_cast<char>(random());
    const auto rules = ClassRules::built_in().with(text, "x");
    if (!rules) cr_assert(rules.error().text.find('\n') == std::string::npos);
  }
}
