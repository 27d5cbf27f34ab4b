// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <criterion/criterion.h>

using namespace crosstie;

Test(finding, findings_alike_become_one_and_the_worst_comes_first) {
  const auto got = sorted({{Severity::note, "a", "", {"x"}, "is", "b", "c"},
                           {Severity::error, "d", "", {"y"}, "is", "b", "c"},
                           {Severity::note, "a", "", {"z"}, "is", "b", "c"},
                           {Severity::note, "a", "", {"w"}, "is", "other", "c"}});
  cr_assert(got.size() == 3 && got[0].check == "d");
  cr_assert(got[1].devices == std::vector<std::string>({"x", "z"}));
  cr_assert_not(is_clean(got));
  cr_assert(is_clean(std::span(got).subspan(1)));
}

Test(finding, text_names_the_devices_and_counts) {
  const Finding one{Severity::error, "a",       "host1",  {"gpu0", "gpu1"},
                    "is\nodd",       "seen it", "mend it"};
  const std::string text = findings_text(std::span(&one, 1));
  cr_assert(text ==
                "error: host1: gpu0, gpu1: is\\nodd\n  seen: seen it\n  do: mend it\n"
                "1 error, 0 warnings, 0 notes\n",
            "%s", text.c_str());
}
