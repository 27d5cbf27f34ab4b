// SPDX-License-Identifier: Apache-2.0
// One TCP connection, from its handshake on.
#pragma once
#include "base/handle.h"
#include "transport/tcp_receiver.h"
#include "transport/tcp_sender.h"
#include "transport/wire/handshake.h"

namespace crosstie {

struct TcpLink {
  enum class State {
    connecting,  // ours; the kernel has yet to reach the peer
    greeting,    // ours; our hello is sent, its welcome is to come
    expecting,   // a stranger that has yet to say hello
    ready,
    failed,
  };

  EndpointId id{};
  State state = State::connecting;
  Fd socket;
  std::string where;  // whom we connect to, for errors
  uint64_t peer = 0;  // the peer's nonce
  wire::Hello hello;  // what we say, or what the stranger has said
  wire::Welcome welcome;
  size_t heard = 0;  // bytes of the hello or the welcome that have come
  TcpSender out;
  TcpReceiver in;
  bool blocked = false;  // waits for room in the socket
  bool dirty = false;    // waits to be flushed
  EndpointCounters counters;

  // Reads on at the peer's half of the handshake, and not beyond it. True once it is complete;
  // fails as soon as it cannot be one.
  Result<bool> hear_hello(uint64_t own_nonce);
  Result<bool> hear_welcome();
  Status say(std::span<const std::byte> bytes);
};

}  // namespace crosstie
