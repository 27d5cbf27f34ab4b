// SPDX-License-Identifier: Apache-2.0
// Bare sockets to a Worker's address, for what no Worker would say.
#pragma once
#include "suite.h"
#include "transport/tcp_socket.h"
#include "transport/unix_socket.h"

namespace crosstie::test {

// Connected, and silent.
inline Fd call(const Transport& transport, const Blob& address) {
  if (transport.name == "tcp") {
    wire::TcpAddress to;
    REQUIRE(wire::read(address, to));
    return must(dial_tcp({to.magic, to.family}, to, {}, default_options()));
  }
  wire::ShmAddress to;
  REQUIRE(wire::read(address, to));
  return must(dial_unix(to.name));
}

}  // namespace crosstie::test
