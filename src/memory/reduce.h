// SPDX-License-Identifier: Apache-2.0
// Reduction kernels on host memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/words.h"

namespace crosstie {

// to[i] = ((s0[i] + s1[i]) + s2[i]) + …, `count` elements, in the order of the sources. `to` may
// be one of them; otherwise it overlaps none. With one source a copy.
void reduce(DataType type, std::byte* to, std::span<const std::byte* const> sources,
            uint64_t count);

}  // namespace crosstie
