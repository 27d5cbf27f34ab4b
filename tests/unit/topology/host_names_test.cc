// SPDX-License-Identifier: Apache-2.0
#include "topology/host_names.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

void expect(std::string_view list, const std::vector<std::string>& names) {
  const auto expanded = expand_host_names(list);
  cr_assert(expanded.has_value(), "%s", expanded ? "" : expanded.error().text.c_str());
  cr_assert(*expanded == names, "%s", fmt::format("{}", fmt::join(*expanded, " ")).c_str());
}

void expect_error(std::string_view list, std::string_view about) {
  const auto expanded = expand_host_names(list);
  cr_assert(!expanded && expanded.error().text.find(about) != std::string::npos, "%s: %s",
            std::string(list).c_str(), expanded ? "" : expanded.error().text.c_str());
}

}  // namespace

Test(host_names, ranges_keep_their_zeros) {
  expect("node[008-010,3]", {"node008", "node009", "node010", "node3"});
}

Test(host_names, several_names_and_several_brackets_multiply) {
  expect("a, r[1-2]n[0-1]-ib", {"a", "r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib"});
}

Test(host_names, what_is_no_list_is_an_error_that_says_why) {
  expect_error("node[1-", "bracket");
  expect_error("node]1", "bracket");
  expect_error("node[2-1]", "backwards");
  expect_error("node[1-x]", "neither a number");
  expect_error("node[]", "neither a number");
  expect_error("a,,b", "no letters");
  expect_error("", "no letters");
}

Test(host_names, no_list_is_longer_than_any_cluster) {
  expect_error("n[0-99999999999999999]", "more than");
  expect_error("n[0-9999][0-9999]", "more than");
  expect_error("n[99999999999999999999]", "neither a number");
  expect_error(std::string(60000, 'n') + "[0-999]", "more than 253 letters");
  expect_error("n[1-2]" + std::string(252, 'n'), "more than 253 letters");
  expect("n[1-2]" + std::string(251, 'n'),
         {"n1" + std::string(251, 'n'), "n2" + std::string(251, 'n')});
}
