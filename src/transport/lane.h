// SPDX-License-Identifier: Apache-2.0
// A one-way stream of messages of bounded size over an endpoint, in order though notifications
// come in any order: each message is put into the next of a few slots of the receiver's memory,
// and the immediate says which slot and how long it is. Consumed slots come back as credits.
// The owner shows both ends the events of their Worker.
#pragma once
#include "transport/endpoint.h"

namespace crosstie {

// Agreed on by both ends. The immediates from `first` on, immediates() of them, are the lane's
// own on this endpoint, both ways.
struct LaneTerms {
  uint32_t slots = 0;
  uint32_t slot_bytes = 0;  // the longest message
  uint32_t first = 0;

  uint64_t memory_bytes() const { return uint64_t{slots} * slot_bytes; }
  uint64_t immediates() const;
  Status check() const;
};

class LaneSender {
 public:
  // `key` and `to` are where the receiver's slots begin.
  static Result<LaneSender> create(Worker& worker, EndpointId endpoint, const LaneTerms& terms,
                                   Blob key, uint64_t to);
  // Puts the message into the next slot; its put_done has this context. `again` also where the
  // receiver has yet to free the slot; `error` also where the message is too long.
  Posted push(const Source& message, uint64_t context);
  // Whether the event was a credit of this lane's.
  bool take(const Event& event);

 private:
  LaneSender(Worker& worker, EndpointId endpoint, const LaneTerms& terms, Blob key, uint64_t to);
  Worker* worker_;
  EndpointId endpoint_;
  LaneTerms terms_;
  Blob key_;
  uint64_t to_;
  std::vector<bool> busy_;  // by slot
  uint32_t next_ = 0;       // the slot of the next message
};

class LaneReceiver {
 public:
  // `slots` is terms.memory_bytes() of memory that the peer may put into.
  static Result<LaneReceiver> create(Worker& worker, EndpointId endpoint, const LaneTerms& terms,
                                     std::span<const std::byte> slots);
  // Whether the event was a message of this lane's.
  bool take(const Event& event);
  // The next message, if it has come; valid until pop().
  std::optional<std::span<const std::byte>> front() const;
  // Frees its slot, and settles.
  Posted pop();
  // Returns the credits that are still owed; `again` where the endpoint had no room for them.
  Posted settle();

 private:
  LaneReceiver(Worker& worker, EndpointId endpoint, const LaneTerms& terms,
               std::span<const std::byte> slots);
  Worker* worker_;
  EndpointId endpoint_;
  LaneTerms terms_;
  std::span<const std::byte> slots_;
  std::vector<std::optional<uint32_t>> arrived_;  // the message's length, by slot
  uint32_t next_ = 0;                             // the slot of the next message
  uint32_t owed_ = 0;                             // credits, for the slots before next_
};

}  // namespace crosstie
