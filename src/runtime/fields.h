// SPDX-License-Identifier: Apache-2.0
// Numbers and texts of any bytes, one behind the other, in network order.
#pragma once
#include <arpa/inet.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace crosstie {

inline void add_number(std::string& to, uint32_t number) {
  const uint32_t ordered = htonl(number);
  to.append(reinterpret_cast<const char*>(&ordered), sizeof ordered);
}
inline void add_text(std::string& to, std::string_view text) {
  add_number(to, static_cast<uint32_t>(text.size()));
  to.append(text);
}

// None where too few bytes are left; else they are taken off.
inline std::optional<uint32_t> take_number(std::string_view& from) {
  uint32_t ordered = 0;
  if (from.size() < sizeof ordered) return std::nullopt;
  memcpy(&ordered, from.data(), sizeof ordered);
  from.remove_prefix(sizeof ordered);
  return ntohl(ordered);
}
inline std::optional<std::string_view> take_text(std::string_view& from) {
  const auto size = take_number(from);
  if (!size || *size > from.size()) return std::nullopt;
  const auto text = from.substr(0, *size);
  from.remove_prefix(*size);
  return text;
}

}  // namespace crosstie
