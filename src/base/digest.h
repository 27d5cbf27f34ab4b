// SPDX-License-Identifier: Apache-2.0
// A 64-bit digest of facts, to see whether ranks agree. FNV-1a (Fowler, Noll, Vo): offset
// basis and prime are the algorithm's own. Not for security.
#pragma once
#include <concepts>
#include <cstdint>
#include <string_view>

namespace crosstie {

class Digest {
 public:
  Digest& add(std::string_view bytes) {
    add(bytes.size());
    for (const char c : bytes) mix(static_cast<uint8_t>(c));
    return *this;
  }
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  Digest& add(T value) {
    auto bits = static_cast<uint64_t>(value);
    for (int i = 0; i < 8; i++, bits >>= 8) mix(static_cast<uint8_t>(bits));
    return *this;
  }
  uint64_t value() const { return hash_; }

 private:
  void mix(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace crosstie
