// SPDX-License-Identifier: Apache-2.0
// What two peers of one host share: a ring of entries each way, and the words by which they wake
// and fence each other. Each index has one writer; both keep their own in private memory and
// trust nothing that the other writes. An index is stored, then the other's Wake bits are
// loaded; the bits are stored, then the index is loaded: all sequentially consistent, so that
// one of the two sees the other and no wake-up is lost.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "transport/endpoint.h"

namespace crosstie {

inline constexpr size_t kCacheLine = 64;
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// An entry: a notification, or the head of a message, whose text fills the entries behind it.
struct ShmEntry {
  enum class Kind : uint32_t { notification = 1, message };
  Kind kind = Kind::notification;
  uint32_t value = 0;  // the immediate, or the bytes of the message
};
inline constexpr size_t kEntryBytes = 16;
constexpr uint64_t entries_of(size_t message_bytes) {
  return 1 + (message_bytes + kEntryBytes - 1) / kEntryBytes;
}

// One direction, as it lies in shared memory; `count` entries follow. Grouped by writer, a cache
// line each.
struct ShmHalf {
  // Written by the producer.
  alignas(kCacheLine) std::atomic<uint64_t> pushed{0};  // entries, ever
  std::atomic<uint64_t> writing{0};                     // the region that a put is writing to, or 0
  // Written by the consumer as it reads.
  alignas(kCacheLine) std::atomic<uint64_t> taken{0};  // entries, ever
  // Written by the consumer now and then.
  alignas(kCacheLine) std::atomic<uint32_t> wakes{0};  // Wake bits: it is asleep until these
  std::atomic<uint32_t> fenced{0};                     // no put may begin
  std::atomic<uint64_t> deregistered{0};               // regions, ever
};
enum Wake : uint32_t {
  kWakeOnEntry = 1,  // there is something in the ring that the sleeper reads
  kWakeOnRoom = 2,   // there is room in the ring that the sleeper writes
};

constexpr size_t half_bytes(uint64_t count) { return sizeof(ShmHalf) + count * kEntryBytes; }

// The part of a ring that is a peer's business and ours: where the entries are.
class ShmRing {
 public:
  ShmRing() = default;
  ShmRing(std::byte* at, uint64_t count)
      : half_(reinterpret_cast<ShmHalf*>(at)), entries_(at + sizeof(ShmHalf)), count_(count) {}
  ShmHalf& half() const { return *half_; }
  uint64_t count() const { return count_; }

  void store(uint64_t index, std::span<const std::byte> bytes) const {
    std::memcpy(at(index), bytes.data(), bytes.size());
  }
  void load(uint64_t index, std::span<std::byte> bytes) const {
    std::memcpy(bytes.data(), at(index), bytes.size());
  }

 private:
  std::byte* at(uint64_t index) const { return entries_ + (index & (count_ - 1)) * kEntryBytes; }
  ShmHalf* half_ = nullptr;
  std::byte* entries_ = nullptr;
  uint64_t count_ = 0;  // a power of two
};

class ShmProducer {
 public:
  enum class Room { ok, none, corrupt };

  ShmProducer() = default;
  explicit ShmProducer(ShmRing ring) : ring_(ring) {}
  ShmHalf& half() const { return ring_.half(); }

  Room room(uint64_t entries) {
    if (pushed_ + entries - taken_ <= ring_.count()) return Room::ok;
    const uint64_t taken = half().taken.load();
    if (taken - taken_ > pushed_ - taken_) return Room::corrupt;
    taken_ = taken;
    return pushed_ + entries - taken_ <= ring_.count() ? Room::ok : Room::none;
  }
  // There is room for it.
  void push(ShmEntry entry, std::span<const std::byte> text) {
    ring_.store(pushed_++, std::as_bytes(std::span(&entry, 1)));
    for (; !text.empty(); pushed_++) {
      const auto piece = text.first(std::min(text.size(), kEntryBytes));
      ring_.store(pushed_, piece);
      text = text.subspan(piece.size());
    }
    half().pushed.store(pushed_);
  }

 private:
  ShmRing ring_;
  uint64_t pushed_ = 0;
  uint64_t taken_ = 0;  // as last seen
};

class ShmConsumer {
 public:
  ShmConsumer() = default;
  explicit ShmConsumer(ShmRing ring) : ring_(ring) {}
  ShmHalf& half() const { return ring_.half(); }
  uint64_t count() const { return ring_.count(); }

  bool empty() const { return half().pushed.load() == taken_; }
  // Hands up to `limit` entries that are there to `take(ShmEntry, text)`, then frees them. How
  // many; fails where the ring is corrupt.
  template <class Take>
  Result<size_t> drain(size_t limit, Take&& take) {
    uint64_t there = half().pushed.load(std::memory_order_acquire) - taken_;
    if (there > ring_.count()) return fail(Code::peer, "the ring is corrupt");
    size_t done = 0;
    for (; there > 0 && done < limit; done++) {
      ShmEntry entry;
      ring_.load(taken_, std::as_writable_bytes(std::span(&entry, 1)));
      const auto used = hand(entry, there, take);
      if (!used) return pass(used);
      taken_ += *used;
      there -= *used;
    }
    if (done > 0) half().taken.store(taken_);
    return done;
  }

 private:
  template <class Take>
  Result<uint64_t> hand(ShmEntry entry, uint64_t there, Take&& take) {
    if (entry.kind == ShmEntry::Kind::notification) {
      take(entry, std::span<const std::byte>());
      return 1;
    }
    const uint64_t used = entries_of(entry.value);
    if (entry.kind != ShmEntry::Kind::message || entry.value == 0 || entry.value > kMaxMessage ||
        used > there)
      return fail(Code::peer, "the ring holds a corrupt entry");
    std::byte text[kMaxMessage];
    for (uint64_t i = 0; i + 1 < used; i++)
      ring_.load(taken_ + 1 + i, std::span(text).subspan(i * kEntryBytes, kEntryBytes));
    take(entry, std::span<const std::byte>(text, entry.value));
    return used;
  }

  ShmRing ring_;
  uint64_t taken_ = 0;
};

}  // namespace crosstie
