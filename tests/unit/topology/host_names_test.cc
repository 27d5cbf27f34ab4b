// SPDX-License-Identifier: Apache-2.0
#include "topology/host_names.h"

#include <criterion/criterion.h>

#include "base/text.h"

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

Test(host_names, folded_are_in_natural_order_and_expand_to_themselves) {
  const auto folds = [](const std::vector<std::string_view>& names, std::string_view to) {
    const std::string folded = fold_host_names(names);
    cr_expect(folded == to, "%s, not %s", folded.c_str(), std::string(to).c_str());
    cr_expect(expand_host_names(folded)->size() == names.size());
  };
  folds({"tray10", "tray9", "tray1"}, "tray[1,9-10]");
  folds({"n098", "n099", "n100", "n102"}, "n[098-100,102]");
  folds({"n1", "n01", "n2"}, "n[01,1-2]");
  folds({"login", "n0", "n1", "login2"}, "login,login2,n[0-1]");
  folds({"r10n1", "r2n1", "r2n2"}, "r2n[1-2],r10n1");
  folds({"a1.pod7.net", "a2.pod7.net", "a3.pod8.net"}, "a[1-2].pod7.net,a3.pod8.net");
  folds({"n99999999999999999999", "n1"}, "n1,n99999999999999999999");
  cr_expect(fold_host_names({}).empty() && fold_host_names({"a", "a"}) == "a");
}

Test(host_names, numbers_within_count_by_their_value) {
  const NaturalOrder before;
  const std::vector<std::string_view> ascending = {
      "", "10", "a", "a1", "a2", "a2b", "a010", "a10", "a10b2", "a10b10", "rack2-1", "rack10"};
  for (size_t i = 0; i < ascending.size(); i++)
    for (size_t j = 0; j < ascending.size(); j++)
      cr_expect(before(ascending[i], ascending[j]) == (i < j), "%zu %zu", i, j);
}
