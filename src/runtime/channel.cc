// SPDX-License-Identifier: Apache-2.0
#include "runtime/channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace crosstie {
namespace {

// Length of the payload (4 bytes, network order) and type (1 byte).
constexpr size_t kHeader = 5;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return fail(Code::missing, "cannot resolve '{}': {}", host, gai_strerror(error));
  return Addresses(found);
}

Status wait_for(int fd, short events, Deadline deadline) {
  pollfd item{fd, events, 0};
  for (;;) {
    const int ready = poll(&item, 1, deadline.poll_ms());
    if (ready > 0) return {};
    if (ready == 0) return fail(Code::timeout, "no answer in time");
    if (errno != EINTR) return fail_errno(Code::io, "poll");
  }
}

Result<Fd> connect_to(const addrinfo& address, Deadline deadline) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(blame(Code::io), "socket");
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return fail_errno(blame(Code::io), "connect");
  const auto ready = wait_for(fd.get(), POLLOUT, deadline);
  if (!ready) return pass(ready);
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) return fail_errno(Code::io, "connect");
  return fd;
}

std::string figures(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

void make_any(sockaddr* address) {
  if (address->sa_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr = htonl(INADDR_ANY);
  else
    reinterpret_cast<sockaddr_in6*>(address)->sin6_addr = in6addr_any;
}

}  // namespace

Channel::Channel(Fd fd, size_t most) : fd_(std::move(fd)), most_(most) {
  const int one = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

Packed pack(uint8_t type, std::string_view payload) {
  const uint32_t length = htonl(static_cast<uint32_t>(payload.size()));
  auto frame = std::make_shared<std::string>();
  frame->reserve(kHeader + payload.size());
  frame->append(reinterpret_cast<const char*>(&length), sizeof length);
  frame->push_back(static_cast<char>(type));
  frame->append(payload);
  return frame;
}

Status Channel::send(Packed frame) {
  out_.push_back(std::move(frame));
  return flush();
}

void Channel::end() { shutdown(fd_.get(), SHUT_WR); }

Status Channel::flush() {
  while (!out_.empty()) {
    const std::string_view rest = std::string_view(*out_.front()).substr(sent_);
    const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return {};
    if (sent < 0 && errno != EINTR) return fail_errno(Code::peer, "connection");
    if (sent > 0) sent_ += static_cast<size_t>(sent);
    if (sent_ < out_.front()->size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
  return {};
}

// One piece of what has arrived; whether there was any. What has been parsed goes first, so that
// no more is held than a frame and a piece.
Result<bool> Channel::fill() {
  in_.erase(0, std::exchange(parsed_, 0));
  char bytes[16384];
  for (;;) {
    const ssize_t got = recv(fd_.get(), bytes, sizeof bytes, 0);
    if (got == 0) return fail(Code::peer, "connection closed");
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0 && errno != EINTR) return fail_errno(Code::peer, "connection");
    if (got < 0) continue;
    in_.append(bytes, static_cast<size_t>(got));
    return true;
  }
}

std::optional<Result<Frame>> Channel::parse() {
  const std::string_view rest = std::string_view(in_).substr(parsed_);
  if (rest.size() < kHeader) return std::nullopt;
  uint32_t length = 0;
  memcpy(&length, rest.data(), sizeof length);
  length = ntohl(length);
  if (length > most_)
    return fail(Code::peer, "a frame of {} bytes, at most {} are allowed", length, most_);
  if (rest.size() < kHeader + length) return std::nullopt;
  parsed_ += kHeader + length;
  return Frame{static_cast<uint8_t>(rest[4]), std::string(rest.substr(kHeader, length))};
}

Result<std::optional<Frame>> Channel::receive() {
  for (;;) {
    if (auto frame = parse()) {
      if (!*frame) return pass(*frame);
      return std::move(**frame);
    }
    const auto filled = fill();
    if (!filled) return pass(filled);
    if (!*filled) return std::optional<Frame>();
  }
}

Result<Frame> Channel::receive(Deadline deadline) {
  for (;;) {
    auto frame = receive();
    if (!frame) return pass(frame);
    if (*frame) return std::move(**frame);
    const auto ready = wait_for(fd_.get(), POLLIN, deadline);
    if (!ready) return pass(ready);
  }
}

std::string Channel::local_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(fd_.get(), generic, &size) != 0) return "";
  const std::string text = figures(generic, size);
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 on a socket of both families
  return text.starts_with(kMapped) ? text.substr(kMapped.size()) : text;
}

std::string place(const std::string& address, int port) {
  const bool in_figures6 = address.find(':') != std::string::npos;
  return in_figures6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

Result<Channel> connect_channel(const std::string& host, uint16_t port, Deadline deadline,
                                size_t most) {
  const auto addresses = resolve(host, port);
  if (!addresses) return pass(addresses);
  Result<Fd> last = fail(Code::missing, "'{}' has no address", host);
  int left = 0;
  for (const addrinfo* a = addresses->get(); a; a = a->ai_next) left++;
  for (const addrinfo* a = addresses->get(); a; a = a->ai_next, left--) {
    // Each has its share of the time: one may swallow packets.
    last = connect_to(*a, Deadline((deadline.at() - Clock::now()) / left));
    if (last) return Channel(std::move(*last), most);
  }
  return pass(last);
}

Result<Fd> listen_on(const std::string& host, uint16_t port) {
  const auto addresses = resolve(host, port);
  if (!addresses) return pass(addresses);
  sockaddr* address = (*addresses)->ai_addr;
  if (!is_loopback(host)) make_any(address);
  Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(blame(Code::io), "socket");
  const int one = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd.get(), address, (*addresses)->ai_addrlen) != 0)
    return fail_errno(Code::io, "cannot listen on " + place(host, port));
  if (listen(fd.get(), SOMAXCONN) != 0) return fail_errno(Code::io, "listen");
  return fd;
}

}  // namespace crosstie
