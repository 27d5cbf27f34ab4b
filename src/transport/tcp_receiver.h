// SPDX-License-Identifier: Apache-2.0
// The incoming half of a TCP connection. Payload goes straight from the socket into the
// registered memory; frames, and what small payloads come with them, pass through a buffer.
#pragma once
#include "transport/events.h"
#include "transport/regions.h"
#include "transport/wire/frame.h"

namespace crosstie {

class TcpReceiver {
 public:
  enum class Received {
    drained,  // nothing more is there now
    budget,   // the budget is spent, go on later
    ended,    // the peer has left; farewell() says why
  };

  TcpReceiver();
  // Takes about `budget` bytes from the socket and appends what has arrived. Fails where the
  // peer breaks the protocol or the connection.
  Result<Received> receive(int fd, size_t budget, const Regions& regions, EndpointId endpoint,
                           Events& events);
  // Whether the rest of a put is still to come into this region.
  bool fills(RegionId region) const;
  const std::string& farewell() const { return farewell_; }

 private:
  struct Sink;
  Status parse(const Sink& sink);
  Status begin(const Sink& sink);
  void finish(const Sink& sink);
  void take(size_t bytes);
  Received end();

  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;  // what of buffer_ is yet to be parsed
  wire::Frame frame_;
  bool in_payload_ = false;
  std::span<std::byte> target_;  // the rest of the payload goes here
  Blob text_;                    // a message, or a reason
  std::string farewell_;
  bool left_ = false;
};

}  // namespace crosstie
