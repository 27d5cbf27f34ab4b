// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "base/options.h"

namespace crosstie {

struct LibraryOptions {
  Level log = Level::warn;
};

inline constexpr std::array kLibraryOptions = {
    row<&LibraryOptions::log>("CROSSTIE_LOG", "", "warn",
                              "what the library says on stderr, this and worse"),
};

}  // namespace crosstie
