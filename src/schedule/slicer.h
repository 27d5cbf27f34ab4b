// SPDX-License-Identifier: Apache-2.0
// The one function that binds parts to elements. The message is divided into K chunks and each
// chunk into parts, at multiples of a granule (a cache line, so that no two ranks' parts share
// one); the last part takes what is left. Hence for every count: the chunks partition the
// message, equal fractions are equal ranges, and a part's divisions partition it.
#pragma once
#include <cstdint>

#include "schedule/schedule.h"

namespace crosstie {

struct Range {
  uint64_t first = 0, count = 0;  // elements
};

class Slicer {
 public:
  // elements of `element_size` bytes in `chunks` ≥ 1 chunks.
  Slicer(uint64_t elements, uint32_t element_size, uint32_t chunks);

  uint32_t chunks() const { return chunks_; }
  Range range(Part part, uint32_t chunk) const;
  // No range of `part`, nor of any other part that is not longer, holds more elements than this,
  // whatever the chunk: the size of a slot.
  uint64_t most(Part part) const;

 private:
  uint64_t chunk_granule(uint32_t chunk) const;
  uint64_t element(uint64_t granule) const;
  uint64_t elements_, granule_, granules_;  // granule_: elements in one; granules_: their number
  uint32_t chunks_;
};

}  // namespace crosstie
