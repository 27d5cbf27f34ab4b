// SPDX-License-Identifier: Apache-2.0
#include "schedule/slicer.h"

#include <algorithm>

namespace crosstie {
namespace {

constexpr uint32_t kCacheLine = 64;  // bytes; of x86-64 and, at the least, of arm64

__extension__ typedef unsigned __int128 Wide;

// ⌊a·b/c⌋ where b ≤ c, so that the result fits though the product may not.
uint64_t scale(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(Wide{a} * b / c);
}
uint64_t scale_up(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>((Wide{a} * b + c - 1) / c);
}

}  // namespace

Slicer::Slicer(uint64_t elements, uint32_t element_size, uint32_t chunks)
    : elements_(elements),
      granule_(std::max(1u, kCacheLine / element_size)),
      granules_(elements / granule_ + (elements % granule_ != 0)),
      chunks_(chunks) {}

uint64_t Slicer::chunk_granule(uint32_t chunk) const { return scale(granules_, chunk, chunks_); }

// The last granule may be cut short by the message's end.
uint64_t Slicer::element(uint64_t granule) const {
  return granule == granules_ ? elements_ : granule * granule_;
}

// ⌊granules·begin/of⌋ depends on the fraction's value only, not on its denominator.
Range Slicer::range(Part part, uint32_t chunk) const {
  const uint64_t first = chunk_granule(chunk);
  const uint64_t granules = chunk_granule(chunk + 1) - first;
  const uint64_t begin = element(first + scale(granules, part.begin, part.of));
  const uint64_t end = element(first + scale(granules, part.end, part.of));
  return {begin, end - begin};
}

// ⌊x + length⌋ − ⌊x⌋ ≤ ⌈length⌉ wherever the part begins.
uint64_t Slicer::most(Part part) const {
  const uint64_t longest_chunk = scale_up(granules_, 1, chunks_);
  const uint64_t granules = scale_up(longest_chunk, part.end - part.begin, part.of);
  return std::min(elements_, granules * granule_);
}

}  // namespace crosstie
