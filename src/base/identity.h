// SPDX-License-Identifier: Apache-2.0
// Names under which hardware and hosts are known from one sighting to the next.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crosstie {

// A PCI function: domain:bus:device.function.
struct Bdf {
  uint32_t domain = 0;
  uint8_t bus = 0, device = 0, function = 0;
  auto operator<=>(const Bdf&) const = default;
};

// "0000:1b:00.0", "1b:00.0"; upper or lower case.
Result<Bdf> parse_bdf(std::string_view text);
std::string to_text(const Bdf& bdf);

// This host's own name, for people: two hosts may have one.
std::string host_name();

}  // namespace crosstie
