// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace crosstie {
namespace {

using wire::TcpAddress;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress socket_address(const TcpAddress& address) {
  SocketAddress result;
  if (address.family == 4) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.host.data(), sizeof in.sin_addr);
    std::memcpy(&result.storage, &in, result.length = sizeof in);
  } else {
    sockaddr_in6 in = {};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    std::memcpy(&in.sin6_addr, address.host.data(), sizeof in.sin6_addr);
    std::memcpy(&result.storage, &in, result.length = sizeof in);
  }
  return result;
}

Result<Fd> make_socket(const TcpAddress& address) {
  const int domain = address.family == 4 ? AF_INET : AF_INET6;
  Fd fd(socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(Code::exhausted, "cannot make a TCP socket");
  return fd;
}

Result<uint16_t> port_of(int fd) {
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (getsockname(fd, bound.get(), &bound.length) != 0) return fail_errno(Code::io, "getsockname");
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(bound.get())->sin_port);
}

}  // namespace

Result<TcpAddress> parse_host(std::string_view text) {
  TcpAddress address;
  const std::string host(text);
  if (inet_pton(AF_INET, host.c_str(), address.host.data()) == 1)
    address.family = 4;
  else if (inet_pton(AF_INET6, host.c_str(), address.host.data()) == 1)
    address.family = 6;
  else
    return fail(Code::invalid, "'{}' is neither an IPv4 nor an IPv6 address", text);
  return address;
}

std::string to_text(const TcpAddress& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.host.data(), host, sizeof host);
  return address.family == 4 ? fmt::format("{}:{}", host, address.port)
                             : fmt::format("[{}]:{}", host, address.port);
}

Result<Fd> listen_tcp(TcpAddress& address) {
  address.port = 0;
  auto fd = make_socket(address);
  if (!fd) return pass(fd);
  const SocketAddress at = socket_address(address);
  if (bind(fd->get(), at.get(), at.length) != 0 || listen(fd->get(), SOMAXCONN) != 0)
    return fail_errno(Code::io, fmt::format("cannot listen on {}", to_text(address)));
  const auto port = port_of(fd->get());
  if (!port) return pass(port);
  address.port = *port;
  return fd;
}

Result<Fd> dial_tcp(const TcpAddress& address, const TransportOptions& options) {
  auto fd = make_socket(address);
  if (!fd) return pass(fd);
  tune_tcp(fd->get(), options);
  const SocketAddress to = socket_address(address);
  if (connect(fd->get(), to.get(), to.length) != 0 && errno != EINPROGRESS && errno != EINTR)
    return fail_errno(blame(Code::peer), "connect");
  return fd;
}

void tune_tcp(int fd, const TransportOptions& options) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto timeout = static_cast<unsigned>(
      std::chrono::ceil<std::chrono::milliseconds>(options.tcp_timeout).count());
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

std::string peer_text(int fd) {
  sockaddr_storage peer = {};
  socklen_t length = sizeof peer;
  TcpAddress address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return "a peer";
  const auto* in = reinterpret_cast<const sockaddr_in*>(&peer);
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&peer);
  address.family = peer.ss_family == AF_INET ? 4 : 6;
  address.port = ntohs(in->sin_port);
  if (address.family == 4)
    std::memcpy(address.host.data(), &in->sin_addr, sizeof in->sin_addr);
  else
    std::memcpy(address.host.data(), &in6->sin6_addr, sizeof in6->sin6_addr);
  return to_text(address);
}

Status dialled(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error == 0) return {};
  errno = error;
  return fail_errno(blame(Code::peer), "connect");
}

}  // namespace crosstie
