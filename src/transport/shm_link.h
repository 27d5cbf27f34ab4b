// SPDX-License-Identifier: Apache-2.0
// One shm peer: the socket over which it was met, the rings shared with it, and those of its
// regions that are mapped here. The socket stays open: the kernel closes the other end when the
// peer dies, however it dies; unless a child of the peer's still holds it, wherefore the process is
// watched, too.
#pragma once
#include <deque>
#include <map>

#include "base/deadline.h"
#include "transport/regions.h"
#include "transport/shm_ring.h"
#include "transport/unix_socket.h"

namespace crosstie {

class ShmLink {
 public:
  enum class State {
    dialling,   // ours; the listener's backlog is full
    greeting,   // ours; our hello is sent, its welcome is to come
    expecting,  // a stranger that has yet to say hello
    ready,
    failed,
  };

  EndpointId id{};
  State state = State::dialling;
  Fd socket;
  Fd process;         // readable when the peer's process has ended
  std::string where;  // whom we have to do with, for errors
  uint64_t peer = 0;  // the peer's nonce
  wire::ShmAddress address;
  Blob hello;                              // ours, until it is sent
  Deadline deadline{Clock::time_point{}};  // of the handshake
  RegionId last_told{};                    // of our regions, in the order of their ids
  bool hung_up = false;                    // the peer has closed its end, and writes no more
  std::deque<wire::Packet> packets;        // that the socket had no room for
  EndpointCounters counters;

  // Fills in `process`. False where it cannot be watched: it is not seen in our namespace,
  // descriptors have run out, the kernel is older than Linux 5.3. Its socket's end has to do then.
  bool watch_process();

  // The handshake. The connecting side makes the rings.
  Status make_rings(uint64_t entries);
  Status attach_rings(Received& hello);
  Status attach_bell(Fd bell);
  bool mapped() const { return !shared_.bytes().empty(); }
  int rings_fd() const { return shared_.fd(); }

  // The peer has told of a region of its.
  Status attach_region(Received& packet);
  void forget_region(uint64_t region);

  Posted put(std::span<const std::byte> source, RegionId region, uint64_t to,
             std::optional<uint32_t> immediate, std::string* why);
  Posted message(std::span<const std::byte> bytes, std::string* why);
  // Wakes the peer if it sleeps until one of these.
  void wake(uint32_t bits);
  ShmConsumer& incoming() { return in_; }
  // Asks to be woken; false where there is something to do already.
  bool arm();
  void disarm() { in_.half().wakes.store(0); }

  // No put of the peer's begins from now on, or none that has not heard of all deregistrations.
  void fence() { in_.half().fenced.store(1); }
  void announce_deregistration() { in_.half().deregistered.fetch_add(1); }
  // The region that a put of the peer's is writing to at this moment, or 0.
  uint64_t being_written() const { return hung_up ? 0 : in_.half().writing.load(); }

 private:
  void split(uint64_t entries, bool ours);
  Posted room(uint64_t entries, std::string* why);
  Posted write(std::span<const std::byte> source, RegionId region, uint64_t to, std::string* why);
  Posted copy(std::span<const std::byte> source, std::byte* to, std::string* why);
  void ring_bell();

  Buffer shared_;
  ShmProducer out_;
  ShmConsumer in_;
  Fd bell_;              // the peer's
  uint64_t wanted_ = 0;  // the fewest entries for which the ring had no room
  struct Attached {
    Buffer memory;
    std::span<std::byte> region;
  };
  std::map<uint64_t, Attached> regions_;
  uint64_t told_ = 0;       // the latest region the peer has told of; they come in order
  uint64_t forgotten_ = 0;  // how many it has told are gone
};

}  // namespace crosstie
