// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace crosstie {

using wire::Frame;

namespace {
// Some hundred small frames a system call.
constexpr size_t kBuffer = 16384;
}  // namespace

struct TcpReceiver::Sink {
  const Regions& regions;
  EndpointId endpoint;
  Events& events;
};

TcpReceiver::TcpReceiver() : buffer_(kBuffer) {}

bool TcpReceiver::fills(RegionId region) const {
  return in_payload_ && frame_.kind == Frame::Kind::put &&
         frame_.region == static_cast<uint64_t>(region);
}

// Into the target first, then into the buffer, in one call.
Result<TcpReceiver::Received> TcpReceiver::receive(int fd, size_t budget, const Regions& regions,
                                                   EndpointId endpoint, Events& events) {
  const Sink sink{regions, endpoint, events};
  while (budget > 0) {
    const size_t direct = std::min(target_.size(), budget);
    // The buffer may only follow a target that is filled to its end.
    const size_t behind = direct == target_.size() ? buffer_.size() - end_ : 0;
    iovec parts[] = {{target_.data(), direct}, {buffer_.data() + end_, behind}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t got = recvmsg(fd, &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::drained;
    if (got < 0) return fail_errno(Code::peer, "receiving");
    if (got == 0) return end();
    const auto bytes = static_cast<size_t>(got);
    take(bytes);
    if (const auto parsed = parse(sink); !parsed) return pass(parsed);
    if (left_) return Received::ended;
    // A short read has emptied the socket; asking again would only cost a system call.
    if (bytes < direct + behind) return Received::drained;
    budget -= std::min(budget, bytes);
  }
  return Received::budget;
}

TcpReceiver::Received TcpReceiver::end() {
  if (!left_)
    farewell_ = in_payload_ || begin_ != end_
                    ? "the connection ended within a frame: the peer is gone"
                    : "the connection ended: the peer is gone";
  return Received::ended;
}

// Accounts for bytes just read: the target's, then the buffer's.
void TcpReceiver::take(size_t bytes) {
  const size_t direct = std::min(bytes, target_.size());
  target_ = target_.subspan(direct);
  end_ += bytes - direct;
}

Status TcpReceiver::parse(const Sink& sink) {
  while (!left_) {
    if (in_payload_) {
      const size_t n = std::min(target_.size(), end_ - begin_);
      if (n > 0) std::memcpy(target_.data(), buffer_.data() + begin_, n);
      target_ = target_.subspan(n);
      begin_ += n;
      if (!target_.empty()) break;
      finish(sink);
    } else {
      if (end_ - begin_ < sizeof frame_) break;
      std::memcpy(&frame_, buffer_.data() + begin_, sizeof frame_);
      begin_ += sizeof frame_;
      if (const auto begun = begin(sink); !begun) return pass(begun);
    }
  }
  // Only a piece of a frame can be left.
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return {};
}

// Finds the place for the payload of frame_.
Status TcpReceiver::begin(const Sink& sink) {
  if (frame_.magic != Frame::kMagic) return fail(Code::peer, "the stream from the peer is corrupt");
  switch (frame_.kind) {
    case Frame::Kind::put:
      target_ = {};
      if (frame_.bytes > 0) {
        const auto target =
            sink.regions.target(static_cast<RegionId>(frame_.region), frame_.offset, frame_.bytes);
        if (!target) return pass(target);
        target_ = *target;
      }
      break;
    case Frame::Kind::message:
    case Frame::Kind::goodbye:
      if (frame_.bytes > kMaxMessage)
        return fail(Code::peer, "a message of {} bytes", frame_.bytes);
      text_.resize(frame_.bytes);
      target_ = text_;
      break;
    default:
      return fail(Code::peer, "a frame of unknown kind {}", static_cast<int>(frame_.kind));
  }
  in_payload_ = true;
  return {};
}

void TcpReceiver::finish(const Sink& sink) {
  in_payload_ = false;
  switch (frame_.kind) {
    case Frame::Kind::put:
      if (frame_.notifies) sink.events.notified(sink.endpoint, frame_.immediate);
      break;
    case Frame::Kind::message:
      sink.events.message(sink.endpoint, text_);
      break;
    case Frame::Kind::goodbye:
      left_ = true;
      farewell_ = text_.empty()
                      ? std::string("closed by peer")
                      : fmt::format("the peer gave up: {}",
                                    std::string_view(reinterpret_cast<const char*>(text_.data()),
                                                     text_.size()));
      break;
  }
}

}  // namespace crosstie
