// SPDX-License-Identifier: Apache-2.0
// Text of others (files, firmware, the environment) on its way to a terminal.
#pragma once
#include <string>
#include <string_view>

namespace crosstie {

bool is_utf8(std::string_view text);

// On one line, with nothing that a terminal would act on: control characters, what changes the
// direction of writing and what is no UTF-8 become \n, \t or \xNN, as in C. A backslash stays as
// it is, so that what was made printable once is not changed again.
std::string printable(std::string_view text);

// One word of a POSIX shell that reads back as the text.
std::string shell_quoted(std::string_view text);

}  // namespace crosstie
