// SPDX-License-Identifier: Apache-2.0
// TCP sockets as the transport wants them: non-blocking, close-on-exec, without delay.
#pragma once
#include <sys/socket.h>

#include "base/handle.h"
#include "transport/endpoint.h"
#include "transport/options.h"
#include "transport/wire/handshake.h"

namespace crosstie {

// Of AF_INET or AF_INET6.
wire::TcpAddress tcp_address(const sockaddr& address);
// "127.0.0.1", "::1".
std::string host_text(const wire::TcpAddress& address);
// "127.0.0.1:4711", "[::1]:4711".
std::string to_text(const wire::TcpAddress& address);

// Bound to address.host and a free port, which is filled in.
Result<Fd> listen_tcp(wire::TcpAddress& address);
// Begins to connect from the host of `from`; the socket becomes writable when it has, or has
// failed.
Result<Fd> dial_tcp(const wire::TcpAddress& from, const wire::TcpAddress& to,
                    const Service& service, const TransportOptions& options);
// For a socket that was accepted.
void tune_tcp(int fd, const TransportOptions& options);
// The other end, as to_text would show it.
std::string peer_text(int fd);
// Before a close: the kernel resets a connection that is closed with input unread, and the peer
// may then lose what we sent last.
void discard_input(int fd);
// Whether the connection begun by dial_tcp stands.
Status dialled(int fd);

}  // namespace crosstie
