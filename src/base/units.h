// SPDX-License-Identifier: Apache-2.0
// Quantities carry their unit in the type: bytes a second one way, seconds. They are converted
// only where text is read or printed.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crosstie {

// One way.
struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};
constexpr Bandwidth gigabits(double rate) { return {rate * 1e9 / 8}; }
constexpr Bandwidth gigabytes(double rate) { return {rate * 1e9}; }

using Seconds = std::chrono::duration<double>;
constexpr Seconds microseconds(double us) { return Seconds(us * 1e-6); }

// "64M": a whole number and an optional K, M, G or T (powers of 1024), as nccl-tests takes it;
// "64MiB" too.
Result<uint64_t> parse_bytes(std::string_view text);
// "30s", "500ms", "2.5m", "250us"; a bare number is seconds.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
// "50 GB/s": 10^9 bytes a second one way, up to three significant digits.
std::string to_text(Bandwidth bandwidth);
// "64M" where exact, else the plain number.
std::string bytes_text(uint64_t bytes);
// The shortest of "30s", "500ms", "250us", "1ns" that is exact.
std::string duration_text(std::chrono::nanoseconds duration);

}  // namespace crosstie
