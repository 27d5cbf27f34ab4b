// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <criterion/criterion.h>

#include "base/log.h"

using namespace crosstie;

Test(printable, text_stays_as_it_is) {
  for (const char* text : {"", "mlx5_0", "a\\b 'c'", "Größe → 1", "\xf0\x9f\x94\xa5"}) {
    cr_assert(printable(text) == text, "%s", text);
    cr_assert(is_utf8(text), "%s", text);
  }
}

Test(printable, what_a_terminal_would_act_on_is_escaped) {
  cr_assert(printable("\x1b[31mred\x7f") == "\\x1b[31mred\\x7f");
  cr_assert(printable("a\nb\tc\r") == "a\\nb\\tc\\x0d");
  cr_assert(printable("\xc2\x9b"
                      "31m") == "\\xc2\\x9b31m",
            "CSI as one character");
  cr_assert(printable("\xe2\x80\xae"
                      "gpu") == "\\xe2\\x80\\xaegpu",
            "right to left");
}

Test(printable, bytes_that_are_no_utf8_are_told_apart) {
  for (const char* text :
       {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    cr_assert_not(is_utf8(text));
    cr_assert(printable(text).starts_with("\\x"));
  }
  cr_assert(printable("a\xffz") == "a\\xffz");
  cr_assert(printable("a\xfez") != printable("a\xffz"));
}

Test(printable, escaping_again_changes_nothing) {
  for (const char* text : {"\x1b[31m\xff\n", "\\x1b", "\\"}) {
    const std::string once = printable(text);
    cr_assert(printable(once) == once);
  }
}

Test(printable, a_shell_word_is_quoted_where_it_must_be) {
  cr_assert(shell_quoted("127.0.0.1:29500") == "127.0.0.1:29500");
  cr_assert(shell_quoted("") == "");
  cr_assert(shell_quoted("a b; rm -r $HOME") == "'a b; rm -r $HOME'");
  cr_assert(shell_quoted("it's") == "'it'\\''s'");
  cr_assert(shell_quoted("\x1b[31m'1") == "$'\\033[31m\\0471'");
}
