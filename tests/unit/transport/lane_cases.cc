// SPDX-License-Identifier: Apache-2.0
// A stream of messages in slots.
#include "party.h"
#include "transport/lane.h"

namespace crosstie::test {
namespace {

struct Stream {
  Stream(const Transport& transport, const LaneTerms& with)
      : terms(with),
        pair(transport, 1 << 16),
        sender(must(LaneSender::create(*pair.a.worker, pair.to_b, terms, pair.b.key(), 64))),
        receiver(must(LaneReceiver::create(*pair.b.worker, pair.to_a, terms,
                                           pair.b.memory.bytes().subspan(64)))) {}
  // Shows both ends what has happened.
  void move() {
    pair.a.poll();
    pair.b.poll();
    for (const Event& event : pair.a.events) credits += sender.take(event);
    std::erase_if(pair.a.events, [](const Event& event) { return event.kind == Kind::notified; });
    while (const auto event = pair.b.take(Kind::notified)) REQUIRE(receiver.take(*event));
  }
  LaneTerms terms;
  Pair pair;
  LaneSender sender;
  LaneReceiver receiver;
  uint32_t credits = 0;
};

void a_lane_keeps_order_and_length(const Transport& transport) {
  Stream stream(transport, {.slots = 5, .slot_bytes = 300, .first = 1000});
  constexpr uint32_t kCount = 2000;
  fill(stream.pair.a.memory.bytes(), 9);
  uint32_t pushed = 0, popped = 0;
  const Deadline deadline(kPatience);
  while (popped < kCount) {
    // Zero and the longest are among the lengths.
    const Source source = {stream.pair.a.region, pushed % 7000, pushed * 43 % 301};
    if (pushed < kCount && stream.sender.push(source, 0) == Posted::ok) pushed++;
    stream.move();
    while (const auto front = stream.receiver.front()) {
      const auto sent = stream.pair.a.memory.bytes().subspan(popped % 7000, popped * 43 % 301);
      REQUIRE(std::equal(front->begin(), front->end(), sent.begin(), sent.end()));
      REQUIRE(stream.receiver.pop() == Posted::ok);
      popped++;
    }
    REQUIRE(!deadline.expired());
  }
  until({&stream.pair.a, &stream.pair.b}, [&] { return stream.move(), stream.credits == kCount; });
}

void a_lane_stops_when_its_slots_are_full(const Transport& transport) {
  Stream stream(transport, {.slots = 4, .slot_bytes = 8, .first = 0});
  const auto push = [&] { return stream.sender.push({stream.pair.a.region, 0, 8}, 0); };
  for (int i = 0; i < 4; i++) REQUIRE(push() == Posted::ok);
  for (int i = 0; i < 50; i++) {
    REQUIRE(push() == Posted::again);
    stream.move();
  }
  REQUIRE(stream.receiver.front() && stream.receiver.pop() == Posted::ok);
  until({&stream.pair.a, &stream.pair.b}, [&] { return stream.move(), stream.credits == 1; });
  REQUIRE(push() == Posted::ok && push() == Posted::again);
}

Event notified(EndpointId endpoint, uint32_t immediate) {
  Event event;
  event.kind = Kind::notified;
  event.endpoint = endpoint;
  event.immediate = immediate;
  return event;
}

// Transports may notify in any order; the lane must not.
void a_lane_puts_notifications_into_order(const Transport& transport) {
  Stream stream(transport, {.slots = 4, .slot_bytes = 7, .first = 100});
  LaneReceiver& receiver = stream.receiver;
  const auto arrive = [&](uint32_t slot, uint32_t length) {
    return receiver.take(notified(stream.pair.to_a, 100 + slot * 8 + length));
  };
  REQUIRE(arrive(2, 3) && !receiver.front());
  REQUIRE(arrive(0, 1) && receiver.front()->size() == 1);
  REQUIRE(receiver.pop() == Posted::ok && !receiver.front());
  REQUIRE(arrive(1, 7) && receiver.front()->size() == 7 && receiver.pop() == Posted::ok);
  REQUIRE(receiver.front()->size() == 3);
  // Not of this lane: twice the same, beyond the slots, below the first, another endpoint.
  REQUIRE(!arrive(2, 3) && !arrive(4, 0));
  REQUIRE(!receiver.take(notified(stream.pair.to_a, 99)));
  REQUIRE(!receiver.take(notified(static_cast<EndpointId>(77), 124)));
  REQUIRE(!stream.sender.take(notified(stream.pair.to_b, 100)));
}

void a_lane_refuses_what_cannot_be(const Transport& transport) {
  Stream stream(transport, {.slots = 2, .slot_bytes = 8, .first = 0});
  REQUIRE(stream.sender.push({stream.pair.a.region, 0, 9}, 0) == Posted::error);
  REQUIRE(!LaneTerms({.slots = 0, .slot_bytes = 8}).check());
  REQUIRE(!LaneTerms({.slots = 8, .slot_bytes = 0}).check());
  REQUIRE(!LaneTerms({.slots = 8, .slot_bytes = 1u << 30}).check());
  REQUIRE(!LaneTerms({.slots = 1, .slot_bytes = 1, .first = 0xffffffff}).check());
  REQUIRE(LaneTerms({.slots = 1, .slot_bytes = 1, .first = 0xfffffffe}).check());
  REQUIRE(!LaneReceiver::create(*stream.pair.b.worker, stream.pair.to_a, stream.terms,
                                stream.pair.b.memory.bytes().first(15)));
}

}  // namespace

std::vector<Case> lane_cases() {
  return {
      {"a lane keeps order and length", a_lane_keeps_order_and_length},
      {"a lane stops when its slots are full", a_lane_stops_when_its_slots_are_full},
      {"a lane puts notifications into order", a_lane_puts_notifications_into_order},
      {"a lane refuses what cannot be", a_lane_refuses_what_cannot_be},
  };
}

}  // namespace crosstie::test
