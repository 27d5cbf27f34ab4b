// SPDX-License-Identifier: Apache-2.0
// TCP sockets as the transport wants them: non-blocking, close-on-exec, without delay.
#pragma once
#include "base/handle.h"
#include "transport/options.h"
#include "transport/wire/handshake.h"

namespace crosstie {

// An IPv4 or IPv6 address in figures; no name is looked up, since that could block.
Result<wire::TcpAddress> parse_host(std::string_view text);
// "127.0.0.1:4711", "[::1]:4711".
std::string to_text(const wire::TcpAddress& address);

// Bound to address.host and a free port, which is filled in.
Result<Fd> listen_tcp(wire::TcpAddress& address);
// Begins to connect; the socket becomes writable when it has, or has failed.
Result<Fd> dial_tcp(const wire::TcpAddress& address, const TransportOptions& options);
// For a socket that was accepted.
void tune_tcp(int fd, const TransportOptions& options);
// The other end, as to_text would show it.
std::string peer_text(int fd);
// Whether the connection begun by dial_tcp stands.
Status dialled(int fd);

}  // namespace crosstie
