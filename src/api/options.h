// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "base/options.h"

namespace crosstie {

struct LibraryOptions {
  Level log = Level::warn;
  bool strict = false;
};

inline constexpr std::array kLibraryOptions = {
    row<&LibraryOptions::log>("CROSSTIE_LOG", "", "warn",
                              "what the library says on stderr, this and worse"),
    row<&LibraryOptions::strict>("CROSSTIE_STRICT", "", "0",
                                 "what the command would work around with a warning is an error"),
};

}  // namespace crosstie
