// SPDX-License-Identifier: Apache-2.0
// How two Workers meet over TCP: the address blob, the connecting side's hello, the listening
// side's welcome. Anything else that connects is recognised by its first bytes.
#pragma once
#include <array>

#include "transport/wire/bytes.h"

namespace crosstie::wire {

inline constexpr uint16_t kVersion = 1;

struct TcpAddress {
  static constexpr uint32_t kMagic = four_letters("XTCP");
  uint32_t magic = kMagic;
  uint16_t family = 0;  // 4 or 6
  uint16_t port = 0;
  uint64_t worker = 0;  // nonce: a reused port is not taken for its former owner
  std::array<uint8_t, 16> host{};
};
static_assert(sizeof(TcpAddress) <= kMaxBlob);

struct Hello {
  static constexpr uint32_t kMagic = four_letters("XHLO");
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t hello_bytes = 0;
  uint64_t to = 0;    // nonce of the Worker that is meant
  uint64_t from = 0;  // nonce of the Worker that connects
  std::array<std::byte, kMaxHello> hello{};
};

struct Welcome {
  static constexpr uint32_t kMagic = four_letters("XWEL");
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t accepted = 0;
};

}  // namespace crosstie::wire
