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

// Leaves through this interface, the port being found when it connects, so that many connections
// can share one. To an address of the other family the kernel finds the way.
Status bind_host(int fd, TcpAddress from, const TcpAddress& to) {
  if (from.family != to.family) return {};
  const int on = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  from.port = 0;
  const SocketAddress at = socket_address(from);
  if (bind(fd, at.get(), at.length) == 0) return {};
  return fail_errno(Code::io, fmt::format("cannot leave from {}", host_text(from)));
}

Status mark(int fd, const TcpAddress& to, const Service& service) {
  if (!service.traffic_class) return {};
  const int value = *service.traffic_class;
  const int done = to.family == 4 ? setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof value)
                                  : setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value);
  return done == 0 ? Status{} : fail_errno(Code::io, fmt::format("traffic class {}", value));
}

}  // namespace

TcpAddress tcp_address(const sockaddr& generic) {
  TcpAddress address;
  const auto* in = reinterpret_cast<const sockaddr_in*>(&generic);
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&generic);
  address.family = generic.sa_family == AF_INET ? 4 : 6;
  address.port = ntohs(in->sin_port);  // at the same place in both families
  if (address.family == 4)
    std::memcpy(address.host.data(), &in->sin_addr, sizeof in->sin_addr);
  else
    std::memcpy(address.host.data(), &in6->sin6_addr, sizeof in6->sin6_addr);
  return address;
}

std::string host_text(const TcpAddress& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.host.data(), host, sizeof host);
  return host;
}

std::string to_text(const TcpAddress& address) {
  const std::string host = host_text(address);
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
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (getsockname(fd->get(), bound.get(), &bound.length) != 0)
    return fail_errno(Code::io, "getsockname");
  address.port = tcp_address(*bound.get()).port;
  return fd;
}

Result<Fd> dial_tcp(const TcpAddress& from, const TcpAddress& to, const Service& service,
                    const TransportOptions& options) {
  auto fd = make_socket(to);
  if (!fd) return pass(fd);
  tune_tcp(fd->get(), options);
  if (const auto marked = mark(fd->get(), to, service); !marked) return pass(marked);
  if (const auto bound = bind_host(fd->get(), from, to); !bound) return pass(bound);
  const SocketAddress at = socket_address(to);
  if (connect(fd->get(), at.get(), at.length) != 0 && errno != EINPROGRESS && errno != EINTR)
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
  SocketAddress peer;
  peer.length = sizeof peer.storage;
  if (getpeername(fd, peer.get(), &peer.length) != 0) return "a peer";
  return to_text(tcp_address(*peer.get()));
}

void discard_input(int fd) {
  constexpr size_t kPiece = 1 << 20;
  constexpr int kMostPieces = 64;  // of one that never stops sending the rest is its own loss
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < kMostPieces && recv(fd, nullptr, kPiece, MSG_TRUNC | MSG_DONTWAIT) > 0;) i++;
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
