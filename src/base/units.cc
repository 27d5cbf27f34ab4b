// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace crosstie {
namespace {

struct Unit {
  std::string_view suffix;
  double nanoseconds;
};
constexpr std::array<Unit, 6> kDurations = {
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
// Ten years: a deadline so far ahead still fits the clock's 64 bits of nanoseconds.
constexpr double kLongest = 87600 * 3600e9;

// The exponent of 1024 of a size's suffix, or -1. KB is neither 1000 nor 1024 for sure.
int size_power(std::string_view suffix) {
  constexpr std::string_view kLetters = "KMGT";
  if (suffix.empty()) return 0;
  if (suffix.size() > 1 && suffix.substr(1) != "iB") return -1;
  const size_t at = kLetters.find(static_cast<char>(suffix[0] & ~0x20));
  return at == std::string_view::npos ? -1 : static_cast<int>(at) + 1;
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const int power = size_power(text.substr(static_cast<size_t>(end - text.data())));
  if (error == std::errc::invalid_argument || power < 0)
    return fail(Code::invalid, "'{}' is not a size; write a number with K, M, G or T, as 64M",
                text);
  const int shift = 10 * power;
  if (error != std::errc() || number << shift >> shift != number)
    return fail(Code::invalid, "'{}' is more than 2^64 bytes", text);
  return number << shift;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc::invalid_argument && number >= 0)
    for (const Unit& unit : kDurations)
      if (suffix == unit.suffix || (suffix.empty() && unit.suffix == "s")) {
        const double nanoseconds = number * unit.nanoseconds;
        if (error != std::errc() || !(nanoseconds <= kLongest))
          return fail(Code::invalid, "'{}' is out of range; at most 87600h", text);
        return std::chrono::nanoseconds(std::llround(nanoseconds));
      }
  return fail(Code::invalid, "'{}' is not a duration; write a number with us, ms, s, m or h", text);
}

std::string to_text(Bandwidth bandwidth) {
  return fmt::format("{:.3g} GB/s", bandwidth.bytes_per_second / 1e9);
}

std::string bytes_text(uint64_t bytes) {
  constexpr std::string_view kLetters = "KMGT";
  size_t power = 0;
  while (power < kLetters.size() && bytes != 0 && bytes % 1024 == 0) bytes /= 1024, power++;
  return power == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kLetters[power - 1]);
}

std::string duration_text(std::chrono::nanoseconds duration) {
  const auto count = duration.count();
  if (count % 1'000'000'000 == 0) return fmt::format("{}s", count / 1'000'000'000);
  if (count % 1'000'000 == 0) return fmt::format("{}ms", count / 1'000'000);
  if (count % 1'000 == 0) return fmt::format("{}us", count / 1'000);
  return fmt::format("{}ns", count);
}

}  // namespace crosstie
