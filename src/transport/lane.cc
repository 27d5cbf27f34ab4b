// SPDX-License-Identifier: Apache-2.0
#include "transport/lane.h"

#include <bit>

namespace crosstie {
namespace {

// Lengths from 0 to slot_bytes.
int length_bits(const LaneTerms& terms) { return std::bit_width(terms.slot_bytes); }

// Where among the lane's immediates a notification lies, if it is the lane's.
std::optional<uint32_t> offset(const LaneTerms& terms, EndpointId endpoint, const Event& event) {
  if (event.kind != Event::Kind::notified || event.endpoint != endpoint) return std::nullopt;
  if (event.immediate < terms.first) return std::nullopt;
  return event.immediate - terms.first;
}

}  // namespace

uint64_t LaneTerms::immediates() const { return uint64_t{slots} << length_bits(*this); }

Status LaneTerms::check() const {
  if (slots == 0 || slot_bytes == 0) return fail(Code::invalid, "a lane without slots");
  if (first + immediates() > uint64_t{1} << 32)
    return fail(Code::invalid, "a lane of {} slots of {} bytes from immediate {} needs too many",
                slots, slot_bytes, first);
  return {};
}

LaneSender::LaneSender(Worker& worker, EndpointId endpoint, const LaneTerms& terms, Blob key,
                       uint64_t to)
    : worker_(&worker),
      endpoint_(endpoint),
      terms_(terms),
      key_(std::move(key)),
      to_(to),
      busy_(terms.slots) {}

Result<LaneSender> LaneSender::create(Worker& worker, EndpointId endpoint, const LaneTerms& terms,
                                      Blob key, uint64_t to) {
  if (const auto sane = terms.check(); !sane) return pass(sane);
  return LaneSender(worker, endpoint, terms, std::move(key), to);
}

Posted LaneSender::push(const Source& message, uint64_t context) {
  if (message.bytes > terms_.slot_bytes) return Posted::error;
  if (busy_[next_]) return Posted::again;
  const auto length = static_cast<uint32_t>(message.bytes);
  const uint32_t immediate = terms_.first + (next_ << length_bits(terms_) | length);
  const uint64_t at = to_ + uint64_t{next_} * terms_.slot_bytes;
  const Posted posted = worker_->put(endpoint_, message, key_, at, immediate, context);
  if (posted != Posted::ok) return posted;
  busy_[next_] = true;
  next_ = (next_ + 1) % terms_.slots;
  return Posted::ok;
}

bool LaneSender::take(const Event& event) {
  const auto slot = offset(terms_, endpoint_, event);
  if (!slot || *slot >= terms_.slots || !busy_[*slot]) return false;
  busy_[*slot] = false;
  return true;
}

LaneReceiver::LaneReceiver(Worker& worker, EndpointId endpoint, const LaneTerms& terms,
                           std::span<const std::byte> slots)
    : worker_(&worker), endpoint_(endpoint), terms_(terms), slots_(slots), arrived_(terms.slots) {}

Result<LaneReceiver> LaneReceiver::create(Worker& worker, EndpointId endpoint,
                                          const LaneTerms& terms,
                                          std::span<const std::byte> slots) {
  if (const auto sane = terms.check(); !sane) return pass(sane);
  if (slots.size() < terms.memory_bytes())
    return fail(Code::invalid, "a lane's slots need {} bytes and have {}", terms.memory_bytes(),
                slots.size());
  return LaneReceiver(worker, endpoint, terms, slots);
}

bool LaneReceiver::take(const Event& event) {
  const auto place = offset(terms_, endpoint_, event);
  if (!place) return false;
  const uint32_t slot = *place >> length_bits(terms_);
  const uint32_t length = *place - (slot << length_bits(terms_));
  if (slot >= terms_.slots || length > terms_.slot_bytes || arrived_[slot]) return false;
  arrived_[slot] = length;
  return true;
}

std::optional<std::span<const std::byte>> LaneReceiver::front() const {
  if (!arrived_[next_]) return std::nullopt;
  return slots_.subspan(size_t{next_} * terms_.slot_bytes, *arrived_[next_]);
}

Posted LaneReceiver::pop() {
  arrived_[next_].reset();
  next_ = (next_ + 1) % terms_.slots;
  owed_++;
  return settle();
}

Posted LaneReceiver::settle() {
  for (; owed_ > 0; owed_--) {
    const uint32_t slot = (next_ + terms_.slots - owed_) % terms_.slots;
    const Posted posted = worker_->put(endpoint_, {}, {}, 0, terms_.first + slot, 0);
    if (posted != Posted::ok) return posted;
  }
  return Posted::ok;
}

}  // namespace crosstie
