// SPDX-License-Identifier: Apache-2.0
#include "transport/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace crosstie {
namespace {

using wire::Packet;

constexpr size_t kMaxDescriptors = 2;

struct AbstractAddress {
  sockaddr_un un = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&un); }
};

// An abstract name begins with a zero byte.
AbstractAddress abstract(std::span<const uint8_t> name) {
  AbstractAddress address;
  address.un.sun_family = AF_UNIX;
  std::memcpy(address.un.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<Fd> make_socket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(Code::exhausted, "cannot make a unix-domain socket");
  return fd;
}

// Takes what came along into owned handles, before anything else can fail.
std::vector<Fd> descriptors_of(msghdr& message) {
  std::vector<Fd> descriptors;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

union ControlSpace {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
};

void attach(msghdr& message, ControlSpace& space, std::span<const int> descriptors) {
  if (descriptors.empty()) return;
  message.msg_control = space.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
}

}  // namespace

Result<Fd> listen_unix(std::span<const uint8_t> name) {
  auto fd = make_socket();
  if (!fd) return pass(fd);
  const AbstractAddress at = abstract(name);
  if (bind(fd->get(), at.get(), at.length) != 0 || listen(fd->get(), SOMAXCONN) != 0)
    return fail_errno(Code::io, "cannot listen on a unix-domain socket");
  return fd;
}

Result<Fd> dial_unix(std::span<const uint8_t> name) {
  auto fd = make_socket();
  if (!fd) return pass(fd);
  const AbstractAddress to = abstract(name);
  if (connect(fd->get(), to.get(), to.length) == 0) return fd;
  if (errno == EAGAIN || errno == EINTR) return Fd();
  return fail_errno(blame(Code::peer), "connect");
}

Result<PeerProcess> peer_process(int fd) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return fail_errno(Code::io, "SO_PEERCRED");
  return PeerProcess{peer.pid, peer.uid};
}

Result<Sent> send_packet(int fd, const Packet& packet, std::span<const int> descriptors) {
  iovec part = {const_cast<Packet*>(&packet), sizeof packet};
  ControlSpace space = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  attach(message, space, descriptors);
  if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return Sent::ok;
  // ETOOMANYREFS: too many descriptors are on their way, over all sockets of this user.
  if (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS) return Sent::again;
  return fail_errno(Code::peer, "sending");
}

Result<Received> receive_packet(int fd) {
  Received received;
  iovec part = {&received.packet, sizeof received.packet};
  ControlSpace space = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes;
  message.msg_controllen = sizeof space.bytes;
  const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return received;
  if (got < 0 && errno != ECONNRESET) return fail_errno(Code::peer, "receiving");
  // A peer that ends with unread packets resets the connection.
  received.what = got > 0 ? Received::What::packet : Received::What::ended;
  if (got <= 0) return received;
  received.descriptors = descriptors_of(message);
  if (message.msg_flags & MSG_CTRUNC)
    return fail(Code::exhausted, "no descriptors are left to receive a peer's memory");
  if (static_cast<size_t>(got) != sizeof(Packet) || received.packet.magic != Packet::kMagic)
    return fail(Code::peer, "the peer is no Crosstie worker");
  if (received.packet.version != wire::kVersion)
    return fail(Code::peer, "the peer speaks version {} of the protocol, we speak {}",
                received.packet.version, wire::kVersion);
  return received;
}

}  // namespace crosstie
