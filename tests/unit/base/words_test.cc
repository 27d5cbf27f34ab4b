// SPDX-License-Identifier: Apache-2.0
#include "base/words.h"

#include <criterion/criterion.h>

using namespace crosstie;

Test(words, a_word_is_known_however_it_is_spelled) {
  for (const char* text : {"all_reduce", "AllReduce", "all-reduce", "ALL REDUCE", "allreduce"})
    cr_assert(spelled<Collective>(text) == Collective::all_reduce, "%s", text);
  for (const char* text : {"NVLSTree", "NVLS_TREE", "nvls-tree"})
    cr_assert(spelled<Algorithm>(text) == Algorithm::nvls_tree, "%s", text);
}

Test(words, part_of_a_word_and_more_than_it_are_other_words) {
  for (const char* text : {"", "_", "all", "allreduces", "all_reduce2", "reduce_all"})
    cr_assert(!spelled<Collective>(text), "%s", text);
  cr_assert(spelled<Algorithm>("nvls") == Algorithm::nvls);
}
