// SPDX-License-Identifier: Apache-2.0
// The outgoing half of a TCP connection: a bounded queue of frames, sent straight from the
// memory they lie in.
#pragma once
#include <deque>

#include "transport/events.h"
#include "transport/wire/frame.h"

namespace crosstie {

class TcpSender {
 public:
  struct Post {
    wire::Frame frame;
    std::span<const std::byte> payload;  // of a put: the source
    Blob copy;                           // of a message: its own
    RegionId source{};
    uint64_t context = 0;
  };
  enum class Flushed {
    all,      // nothing is left
    budget,   // the budget is spent, go on later
    blocked,  // the socket is full
  };

  size_t size() const { return posts_.size(); }
  void push(Post post);
  bool uses(RegionId region) const;
  // Hands at most about `budget` bytes to the kernel; appends put_done for what is through.
  Result<Flushed> flush(int fd, size_t budget, EndpointId endpoint, Events& events);
  // Says farewell if the stream is between two frames, dropping what has not been begun.
  void farewell(int fd, std::string_view reason);

 private:
  struct Batch;
  Batch gather(size_t budget);
  void advance(size_t sent, EndpointId endpoint, Events& events);

  std::deque<Post> posts_;
  size_t sent_ = 0;  // of the first post, frame and payload
};

}  // namespace crosstie
