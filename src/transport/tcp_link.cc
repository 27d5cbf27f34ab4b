// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_link.h"

#include <sys/socket.h>

#include <cerrno>

namespace crosstie {
namespace {

// Reads what is still missing of `whole`; true once nothing is.
Result<bool> hear(int fd, std::span<std::byte> whole, size_t& heard) {
  const ssize_t got = recv(fd, whole.data() + heard, whole.size() - heard, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (got < 0) return fail_errno(Code::peer, "handshake");
  if (got == 0) return fail(Code::peer, "handshake: the peer closed the connection");
  heard += static_cast<size_t>(got);
  return heard == whole.size();
}

// A stranger is turned away at its first wrong byte.
Status check_magic(std::span<const std::byte> heard, const uint32_t& magic) {
  const auto right = wire::bytes_of(magic);
  const size_t n = std::min(heard.size(), right.size());
  if (std::memcmp(heard.data(), right.data(), n) != 0)
    return fail(Code::peer, "handshake: the peer is no Crosstie worker");
  return {};
}

Status check_version(uint16_t theirs) {
  if (theirs != wire::kVersion)
    return fail(Code::peer, "handshake: the peer speaks version {} of the protocol, we speak {}",
                theirs, wire::kVersion);
  return {};
}

}  // namespace

Result<bool> TcpLink::hear_hello(uint64_t own_nonce) {
  const auto whole = std::as_writable_bytes(std::span(&hello, 1));
  const auto complete = hear(socket.get(), whole, heard);
  if (!complete) return pass(complete);
  if (const auto right = check_magic(whole.first(heard), wire::Hello::kMagic); !right)
    return pass(right);
  if (!*complete) return false;
  if (const auto right = check_version(hello.version); !right) return pass(right);
  if (hello.to != own_nonce) return fail(Code::peer, "handshake: the peer means another worker");
  if (hello.hello_bytes > kMaxHello)
    return fail(Code::peer, "handshake: a hello of {} bytes", hello.hello_bytes);
  return true;
}

Result<bool> TcpLink::hear_welcome() {
  const auto whole = std::as_writable_bytes(std::span(&welcome, 1));
  const auto complete = hear(socket.get(), whole, heard);
  if (!complete) return pass(complete);
  if (const auto right = check_magic(whole.first(heard), wire::Welcome::kMagic); !right)
    return pass(right);
  if (!*complete) return false;
  if (const auto right = check_version(welcome.version); !right) return pass(right);
  if (!welcome.accepted)
    return fail(Code::peer, "handshake: the worker that had this address is gone");
  return true;
}

Status TcpLink::say(std::span<const std::byte> bytes) {
  // The first bytes on a connection always fit into its socket's buffer.
  const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) return fail_errno(Code::peer, "handshake");
  if (static_cast<size_t>(sent) != bytes.size())
    return fail(Code::io, "handshake: {} of {} bytes were sent", sent, bytes.size());
  return {};
}

}  // namespace crosstie
