// SPDX-License-Identifier: Apache-2.0
// Framed messages over a non-blocking stream socket, for the few things that ranks say before
// and beside the data: meeting, signs of life, deaths.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/result.h"

namespace crosstie {

struct Frame {
  uint8_t type = 0;
  std::string payload;
};

class Channel {
 public:
  Channel() = default;
  // Takes a connected stream socket and makes it non-blocking. A frame whose payload is larger
  // than `most` is an error.
  Channel(Fd fd, size_t most);

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }

  // Sends what the socket takes now and keeps the rest. Never blocks.
  Status send(uint8_t type, std::string_view payload);
  Status flush();
  bool has_unsent() const { return !out_.empty(); }

  // The next whole frame, if it has arrived. An error once the peer has closed.
  Result<std::optional<Frame>> receive();
  // Blocks for it until the deadline.
  Result<Frame> receive(Deadline deadline);

  // The numeric address of this end and of the other one, without the port.
  std::string local_address() const;

 private:
  Status fill();
  std::optional<Result<Frame>> parse();

  Fd fd_;
  size_t most_ = 0;
  std::string in_, out_;
};

bool is_loopback(const std::string& address);

// Connects to HOST:PORT, to the first of its addresses that answers.
Result<Channel> connect_channel(const std::string& host, uint16_t port, Deadline deadline,
                                size_t most);
// Listens on loopback alone if HOST says so (127.0.0.1, ::1, localhost), else on all addresses of
// its family.
Result<Fd> listen_on(const std::string& host, uint16_t port);

}  // namespace crosstie
