// SPDX-License-Identifier: Apache-2.0
// What follows the handshake on a TCP connection: frames, each with its payload behind it.
#pragma once
#include "transport/wire/bytes.h"

namespace crosstie::wire {

inline constexpr size_t kMaxReason = 200;

struct Frame {
  static constexpr uint16_t kMagic = 0x5843;
  enum class Kind : uint8_t {
    put = 1,  // payload goes to `offset` of `region`
    message,  // payload is the message
    goodbye,  // payload is the reason, or empty; nothing follows
  };
  uint16_t magic = kMagic;  // a stream out of step is noticed at the next frame
  Kind kind = Kind::put;
  uint8_t notifies = 0;
  uint32_t immediate = 0;
  uint64_t bytes = 0;  // of the payload
  uint64_t offset = 0;
  uint64_t region = 0;
};
static_assert(sizeof(Frame) == 32);

}  // namespace crosstie::wire
