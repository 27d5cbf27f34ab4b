// SPDX-License-Identifier: Apache-2.0
// hwloc's sets of CPUs and of NUMA nodes.
#pragma once
#include <hwloc/bitmap.h>

#include "base/handle.h"

namespace crosstie::probe {

struct BitmapTraits {
  using type = hwloc_bitmap_t;
  static constexpr type none = nullptr;
  static void close(type bitmap) { hwloc_bitmap_free(bitmap); }
};
using Bitmap = Handle<BitmapTraits>;

}  // namespace crosstie::probe
