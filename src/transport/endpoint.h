// SPDX-License-Identifier: Apache-2.0
// The one primitive beneath everything that moves bytes: notified puts into memory that the
// peer registered, and small ordered messages. A Worker owns the endpoints of one transport and
// is used by one thread at a time, but for register_memory() and key(), which any thread may
// call at any time; nothing here blocks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/buffer.h"

namespace crosstie {

// Addresses and keys travel by any other channel as plain bytes.
using Blob = std::vector<std::byte>;
inline constexpr size_t kMaxBlob = 128;
inline constexpr size_t kMaxMessage = 256;
inline constexpr size_t kMaxHello = 64;

// Valid for the Worker that gave them, never used again after close.
enum class EndpointId : uint32_t {};
enum class RegionId : uint64_t {};  // enough for a registration a nanosecond, for centuries

// A way out of this process: a network interface or port, or the host's own memory.
struct Device {
  std::string name;     // as the system calls it, "eth0"; or the transport's name
  std::string address;  // in figures; empty where it has none
};

// All that a transport knows of a traffic class.
struct Service {
  // The byte that marks packets: IP's DS field, RoCE's and InfiniBand's traffic class (DSCP in
  // its upper six bits). None: the system's default. Nothing to shared memory.
  std::optional<uint8_t> traffic_class;
};

// What a registered region is for.
enum class Access : uint8_t {
  local,   // the source of our puts
  remote,  // the same, and peers with its key may put into it
};

struct Source {
  RegionId region{};
  uint64_t from = 0;
  uint64_t bytes = 0;
};

enum class Posted {
  ok,
  again,  // no room now; poll, then try the same call again
  error,  // the endpoint has failed; a `failed` event says or said why
};

struct Event {
  enum class Kind : uint8_t {
    connected,  // connect() has reached the peer
    accepted,   // a peer has connected; `bytes` is its hello
    put_done,   // the source of the put with this `context` may be reused
    notified,   // a put with this `immediate` has landed: its bytes are visible
    message,    // `bytes`
    failed,     // nothing more will happen on this endpoint; `why`. Close it
  };
  Kind kind = Kind::failed;
  EndpointId endpoint{};
  uint32_t immediate = 0;
  uint64_t context = 0;
  std::vector<std::byte> bytes;
  std::string why;
  bool died = false;  // failed: the peer's process has ended without closing
};

// Exact, per endpoint, since it was connected.
struct EndpointCounters {
  uint64_t puts = 0;       // accepted by put(), with or without bytes
  uint64_t put_bytes = 0;  // their payload
  uint64_t messages = 0;   // accepted by message()
};

class Worker {
 public:
  virtual ~Worker() = default;
  virtual std::string_view transport() const = 0;  // "shm", "tcp"

  // Never empty, the same for as long as the Worker lives. `device` below is an index into it.
  virtual std::span<const Device> devices() const = 0;

  // Accepts connections at the device from now on, for as long as the Worker lives. The blob
  // (≤ kMaxBlob) is what peers connect to.
  virtual Result<Blob> listen(size_t device) = 0;

  // Begins to connect, through the device, to a listening Worker; `hello` (≤ kMaxHello) is handed
  // to it. An event follows: connected, or failed at the latest after the transport's connect
  // deadline. Fails at once where the blob is not of this transport, or it is plain that nobody
  // listens.
  virtual Result<EndpointId> connect(size_t device, std::span<const std::byte> address,
                                     std::span<const std::byte> hello, const Service& service) = 0;

  // Memory that puts name. It must outlive the registration. `remote` memory that a transport
  // cannot reach from the peer (plain memory under shm) fails with Code::unsupported. Any thread.
  virtual Result<RegionId> register_memory(const MemoryView& memory, Access access) = 0;
  // After `ok` no put of a peer lands in the region; puts that name it fail their endpoint, and
  // so do posted puts of ours that have it as their source. `again`: a write of a peer's into it
  // is under way; call again (only where peers write by themselves, as under shm).
  virtual Posted deregister(RegionId region) = 0;
  // What a peer needs to put into the region, ≤ kMaxBlob; empty where it is not `remote`. Any
  // thread.
  virtual Blob key(RegionId region) const = 0;

  // Writes source.bytes bytes from our region to offset `to` of the peer's region, then, where
  // given, raises `immediate` at the peer. With zero bytes it only notifies: source, key and `to`
  // are not looked at. Puts complete and notify in any order; a notification never precedes its
  // own bytes. The source must stay as it is until put_done, which is reported for every
  // accepted put that has bytes, and for no other; or until the endpoint has failed or is closed.
  // `again` and `error` leave nothing behind. Before `connected` the answer is `again`.
  virtual Posted put(EndpointId endpoint, Source source, std::span<const std::byte> key,
                     uint64_t to, std::optional<uint32_t> immediate, uint64_t context) = 0;
  // Copied at once (1 to kMaxMessage bytes), delivered in order per endpoint.
  virtual Posted message(EndpointId endpoint, std::span<const std::byte> bytes) = 0;

  // Moves what can be moved and appends what has happened. Fails only when the Worker itself is
  // beyond use.
  virtual Status poll(std::vector<Event>& events) = 0;

  // To sleep: call arm(); if it returns true, the descriptor becomes readable on the next event,
  // and when a call that was answered `again` is worth another try. False: there is something to
  // do; try again what was refused and poll, then arm anew. The descriptor is the Worker's, and
  // can be nested in a poll set of the caller's.
  virtual int fd() const = 0;
  virtual bool arm() = 0;

  // After `ok` nothing that this peer sent can land in our memory, no event of the endpoint
  // follows, and it is of no further use but to be closed. `again`: a write of the peer's is
  // under way; poll and call again. The peer's endpoint fails when it puts next, or at the close.
  virtual Posted fence(EndpointId endpoint) = 0;
  // Never waits on the peer. Posted work may or may not reach it, and no event of this endpoint
  // follows. The peer gets `failed` ("closed by peer") once it has received what did reach it.
  virtual void close(EndpointId endpoint) = 0;

  virtual EndpointCounters counters(EndpointId endpoint) const = 0;
};

}  // namespace crosstie
