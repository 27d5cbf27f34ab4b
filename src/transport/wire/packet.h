// SPDX-License-Identifier: Apache-2.0
// What shm peers say over their unix-domain socket: all that needs a descriptor passed, and that
// they are leaving. One packet each, of one size.
#pragma once
#include <algorithm>
#include <array>

#include "transport/wire/handshake.h"

namespace crosstie::wire {

struct ShmAddress {
  static constexpr uint32_t kMagic = four_letters("XSHM");
  uint32_t magic = kMagic;
  uint32_t unused = 0;
  uint64_t worker = 0;             // nonce
  std::array<uint8_t, 16> name{};  // of the socket, in the abstract namespace
};
static_assert(sizeof(ShmAddress) <= kMaxBlob);

struct Packet {
  static constexpr uint32_t kMagic = four_letters("XPKT");
  enum class Kind : uint16_t {
    hello = 1,  // descriptors: the shared rings, the bell; `text`: the hello
    welcome,    // descriptor: the bell
    region,     // descriptor: the memory
    forget,     // the region is gone
    goodbye,    // `text`: why, or empty; nothing follows
  };
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Kind kind = Kind::hello;
  uint64_t region = 0;
  uint64_t to = 0, from = 0;       // of a hello and a welcome: nonces
  uint64_t offset = 0, bytes = 0;  // of a region: where in the memory it is
  uint32_t ring = 0;               // of a hello: entries each way
  uint32_t text_bytes = 0;
  std::array<char, 200> text{};

  void set_text(std::string_view from_text) {
    text_bytes = static_cast<uint32_t>(std::min(from_text.size(), text.size()));
    std::copy_n(from_text.begin(), text_bytes, text.begin());
  }
  std::string_view get_text() const {
    return {text.data(), std::min<size_t>(text_bytes, text.size())};
  }
};

}  // namespace crosstie::wire
