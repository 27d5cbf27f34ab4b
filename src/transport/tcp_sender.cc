// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace crosstie {

using wire::Frame;

// Frames and payloads that one sendmsg(2) takes.
struct TcpSender::Batch {
  std::array<iovec, 64> parts;
  size_t count = 0;
  size_t bytes = 0;

  bool full() const { return count + 2 > parts.size(); }
  // The part beyond the first `skip` bytes, which `skip` is reduced by; no more than `limit`.
  void add(std::span<const std::byte> part, size_t& skip, size_t limit) {
    const size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    part = part.subspan(skipped);
    part = part.first(std::min(part.size(), limit > bytes ? limit - bytes : 0));
    if (part.empty()) return;
    parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
    bytes += part.size();
  }
};

void TcpSender::push(Post post) {
  posts_.push_back(std::move(post));
  Post& last = posts_.back();
  if (!last.copy.empty()) last.payload = last.copy;
}

bool TcpSender::uses(RegionId region) const {
  return std::any_of(posts_.begin(), posts_.end(), [region](const Post& post) {
    return post.frame.kind == Frame::Kind::put && post.frame.bytes > 0 && post.source == region;
  });
}

TcpSender::Batch TcpSender::gather(size_t budget) {
  Batch batch;
  size_t skip = sent_;
  for (const Post& post : posts_) {
    if (batch.full() || batch.bytes >= budget) break;
    batch.add(wire::bytes_of(post.frame), skip, budget);
    batch.add(post.payload, skip, budget);
  }
  return batch;
}

void TcpSender::advance(size_t sent, EndpointId endpoint, Events& events) {
  sent_ += sent;
  while (!posts_.empty()) {
    const Post& first = posts_.front();
    const size_t whole = sizeof(Frame) + first.payload.size();
    if (sent_ < whole) break;
    sent_ -= whole;
    if (first.frame.kind == Frame::Kind::put && first.frame.bytes > 0)
      events.put_done(endpoint, first.context);
    posts_.pop_front();
  }
}

Result<TcpSender::Flushed> TcpSender::flush(int fd, size_t budget, EndpointId endpoint,
                                            Events& events) {
  while (!posts_.empty()) {
    if (budget == 0) return Flushed::budget;
    Batch batch = gather(budget);
    msghdr message = {};
    message.msg_iov = batch.parts.data();
    message.msg_iovlen = batch.count;
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Flushed::blocked;
    if (sent < 0) return fail_errno(Code::peer, "sending");
    advance(static_cast<size_t>(sent), endpoint, events);
    budget -= static_cast<size_t>(sent);
  }
  return Flushed::all;
}

void TcpSender::farewell(int fd, std::string_view reason) {
  if (sent_ != 0) return;
  reason = reason.substr(0, wire::kMaxReason);
  Frame frame;
  frame.kind = Frame::Kind::goodbye;
  frame.bytes = reason.size();
  iovec parts[] = {{&frame, sizeof frame}, {const_cast<char*>(reason.data()), reason.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  // Best effort: without it the peer sees the connection end.
  [[maybe_unused]] const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace crosstie
