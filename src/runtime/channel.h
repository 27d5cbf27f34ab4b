// SPDX-License-Identifier: Apache-2.0
// Framed messages over a non-blocking stream socket, for the few things that ranks say before
// and beside the data: meeting, signs of life, deaths.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
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

// A frame as it travels. What many are sent is packed once and held once.
using Packed = std::shared_ptr<const std::string>;
Packed pack(uint8_t type, std::string_view payload);

class Channel {
 public:
  Channel() = default;
  // Takes a connected stream socket and makes it non-blocking. A frame whose payload is larger
  // than `most` is an error.
  Channel(Fd fd, size_t most);

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  // Nothing more will be sent; the peer sees it, though a forked child hold the socket.
  void end();

  // Sends what the socket takes now and keeps the rest. Never blocks.
  Status send(uint8_t type, std::string_view payload) { return send(pack(type, payload)); }
  Status send(Packed frame);
  Status flush();
  bool has_unsent() const { return !out_.empty(); }

  // The next whole frame, if it has arrived. An error once the peer has closed.
  Result<std::optional<Frame>> receive();
  // Blocks for it until the deadline.
  Result<Frame> receive(Deadline deadline);

  // The numeric address of this end, without the port.
  std::string local_address() const;

 private:
  Result<bool> fill();
  std::optional<Result<Frame>> parse();

  Fd fd_;
  size_t most_ = 0;
  std::string in_;
  size_t parsed_ = 0;  // of in_
  std::list<Packed> out_;
  size_t sent_ = 0;  // of the first
};

// "h:29500", "[::1]:29500".
std::string place(const std::string& address, int port);

bool is_loopback(const std::string& address);

// Connects to HOST:PORT, to the first of its addresses that answers.
Result<Channel> connect_channel(const std::string& host, uint16_t port, Deadline deadline,
                                size_t most);
// Listens on loopback alone if HOST says so (127.0.0.1, ::1, localhost), else on all addresses of
// its family.
Result<Fd> listen_on(const std::string& host, uint16_t port);

}  // namespace crosstie
