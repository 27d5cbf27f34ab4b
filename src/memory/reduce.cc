// SPDX-License-Identifier: Apache-2.0
#include "memory/reduce.h"

#include <algorithm>
#include <array>

namespace crosstie {
namespace {

// Elements that are summed over all sources before the next are touched: the partial sums stay
// in the first-level cache, however many sources there are.
constexpr uint64_t kBlock = 1024;

template <class T>
void sum_block(T* to, std::span<const std::byte* const> sources, uint64_t first, uint64_t count) {
  std::array<T, kBlock> sum;
  const auto at = [first](const std::byte* source) {
    return reinterpret_cast<const T*>(source) + first;
  };
  std::copy_n(at(sources[0]), count, sum.begin());
  for (const std::byte* source : sources.subspan(1)) {
    const T* from = at(source);
    for (uint64_t i = 0; i < count; i++) sum[i] += from[i];
  }
  std::copy_n(sum.begin(), count, to + first);
}

template <class T>
void sum(std::byte* to, std::span<const std::byte* const> sources, uint64_t count) {
  for (uint64_t first = 0; first < count; first += kBlock)
    sum_block(reinterpret_cast<T*>(to), sources, first, std::min(kBlock, count - first));
}

}  // namespace

void reduce(DataType type, std::byte* to, std::span<const std::byte* const> sources,
            uint64_t count) {
  switch (type) {
    case DataType::f32:
      return sum<float>(to, sources, count);
    case DataType::u64:
      return sum<uint64_t>(to, sources, count);
  }
}

}  // namespace crosstie
