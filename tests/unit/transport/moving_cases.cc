// SPDX-License-Identifier: Apache-2.0
// Bytes, notifications and messages between peers that do as they should.
#include <cstring>
#include <thread>

#include "party.h"

namespace crosstie::test {
namespace {

void messages_keep_their_order(const Transport& transport) {
  Pair pair(transport);
  constexpr size_t kCount = 3000;
  const auto text = [](size_t i) {
    return fmt::format("{:05}", i)
        .append(i * 7 % (kMaxMessage - 4), static_cast<char>('a' + i % 26));
  };
  size_t sent_a = 0, sent_b = 0;
  until({&pair.a, &pair.b}, [&] {
    while (sent_a < kCount &&
           pair.a.worker->message(pair.to_b, as_bytes(text(sent_a))) == Posted::ok)
      sent_a++;
    while (sent_b < kCount &&
           pair.b.worker->message(pair.to_a, as_bytes(text(sent_b))) == Posted::ok)
      sent_b++;
    return pair.a.count(Kind::message) == kCount && pair.b.count(Kind::message) == kCount;
  });
  for (Party* party : {&pair.a, &pair.b})
    for (size_t i = 0; i < kCount; i++)
      REQUIRE(as_text(party->take(Kind::message)->bytes) == text(i));
}

// The child fills one of eight slots, the parent checks it and grants the slot anew.
constexpr size_t kSlot = 5000, kSlots = 8;

void fill_slots(const Transport& transport, int socket, uint32_t count) {
  Visitor visitor(transport, socket, kSlot * kSlots);
  std::vector<bool> busy(kSlots);
  for (uint32_t i = 0; i < count; i++) {
    const size_t slot = i % kSlots;
    if (i >= kSlots) visitor.await(Kind::message);
    const size_t bytes = 1 + i * 37 % kSlot;
    fill(visitor.memory.bytes().subspan(slot * kSlot, bytes), i);
    REQUIRE(visitor.put(visitor.peer, {visitor.region, slot * kSlot, bytes}, visitor.peer_key,
                        slot * kSlot, i) == Posted::ok);
    // Its source is filled anew only after the slot's grant; put_done is not later than that.
  }
  visitor.await(Kind::failed);
}

void a_notification_never_precedes_its_bytes(const Transport& transport) {
  const uint32_t count = 20000 / kScale;
  Child child([&](int socket) { fill_slots(transport, socket, count); });
  Party host(transport, kSlot * kSlots);
  const EndpointId peer = receive_visitor(host, child);
  std::vector<bool> seen(count);
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t i = host.await(Kind::notified).immediate;
    REQUIRE(i < count && !seen[i]);
    seen[i] = true;
    REQUIRE_THAT(filled(host.memory.bytes().subspan(i % kSlots * kSlot, 1 + i * 37 % kSlot), i),
                 "put {} was notified before its bytes were there", i);
    REQUIRE(host.message(peer, "go on") == Posted::ok);
  }
  host.worker->close(peer);
  child.must_end();
}

void back_pressure_says_again(const Transport& transport) {
  constexpr size_t kBytes = 4096;
  Pair pair(transport, kBytes);
  const Blob key = pair.b.key();
  uint32_t accepted = 0;
  const auto post = [&] {
    return pair.a.worker->put(pair.to_b, pair.from_a(0, kBytes), key, 0, accepted, accepted);
  };
  // Only when nothing has gone for a while is everything full.
  Deadline still(std::chrono::milliseconds(200));
  while (!still.expired()) {
    const Posted posted = post();
    REQUIRE(posted != Posted::error);
    if (posted == Posted::ok) {
      accepted++;
      still = Deadline(std::chrono::milliseconds(200));
    }
    pair.a.poll();
    REQUIRE_THAT(accepted < 20000, "puts pile up while nobody receives them");
  }
  REQUIRE(accepted > 0);
  until({&pair.a, &pair.b}, [&] { return pair.b.count(Kind::notified) == accepted; });
  until({&pair.a, &pair.b}, [&] { return pair.a.count(Kind::put_done) == accepted; });
  REQUIRE(post() == Posted::ok);
}

// A sender that never polls is held up as well, whoever receives.
void a_sender_that_does_not_poll_is_told_again(const Transport& transport) {
  Pair pair(transport);
  const Blob key = pair.b.key();
  int accepted = 0;
  for (int i = 0; i < 100000; i++) {
    accepted +=
        pair.a.worker->put(pair.to_b, pair.from_a(0, 8), key, 0, std::nullopt, 0) == Posted::ok;
    if (i % 100 == 0) pair.b.poll();
  }
  REQUIRE(accepted > 0 && accepted < 10000);
}

void put_done_comes_once_for_each_put_with_bytes(const Transport& transport) {
  Pair pair(transport);
  const Blob key = pair.b.key();
  constexpr uint64_t kCount = 1000;
  for (uint64_t i = 0; i < kCount; i++) {
    const uint64_t bytes = i % 3 == 0 ? 0 : i % 64 + 1;
    const auto immediate = i % 2 ? std::optional<uint32_t>(7) : std::nullopt;
    until({&pair.a, &pair.b}, [&] {
      return pair.a.worker->put(pair.to_b, pair.from_a(0, bytes), key, 0, immediate, i) ==
             Posted::ok;
    });
  }
  REQUIRE(pair.a.message(pair.to_b, "end") == Posted::ok);
  until({&pair.a, &pair.b}, [&] {
    return pair.b.count(Kind::message) == 1 && pair.b.count(Kind::notified) == kCount / 2;
  });
  pair.a.poll();
  std::vector<int> done(kCount);
  while (const auto event = pair.a.take(Kind::put_done)) done.at(event->context)++;
  for (uint64_t i = 0; i < kCount; i++) REQUIRE(done[i] == (i % 3 == 0 ? 0 : 1));
}

void puts_without_bytes_notify(const Transport& transport) {
  Pair pair(transport);
  for (const uint32_t immediate : {0u, 1u, 0xffffffffu})
    REQUIRE(pair.a.put(pair.to_b, {}, {}, 0, immediate) == Posted::ok);
  // Without a notification either, it is allowed and does nothing.
  REQUIRE(pair.a.put(pair.to_b, {}, {}, 0, std::nullopt) == Posted::ok);
  until({&pair.a, &pair.b}, [&] { return pair.b.count(Kind::notified) == 3; });
  uint64_t sum = 0;
  while (const auto event = pair.b.take(Kind::notified)) sum += event->immediate;
  REQUIRE(sum == 0x100000000u);
  REQUIRE(pair.a.count(Kind::put_done) == 0);
}

// Small puts from a child; both sides sleep whenever they have nothing to do.
void send_many(const Transport& transport, int socket, uint32_t count) {
  Visitor visitor(transport, socket);
  for (uint32_t i = 0; i < count; i++) {
    REQUIRE(visitor.put(visitor.peer, {visitor.region, i % 512 * 8, 8}, visitor.peer_key,
                        i % 512 * 8, i) == Posted::ok);
    if (i % 64 == 0) visitor.poll();
    visitor.events.clear();
  }
  REQUIRE(visitor.message(visitor.peer, "end") == Posted::ok);
  // It must not depend on this process leaving.
  visitor.await(Kind::message);
}

void a_million_small_puts_arrive_once_each(const Transport& transport) {
  const uint32_t count = 1'000'000 / kScale;
  Child child([&](int socket) { send_many(transport, socket, count); });
  Party host(transport);
  const EndpointId peer = receive_visitor(host, child);
  std::vector<bool> seen(count);
  uint32_t arrived = 0;
  const Deadline deadline(kPatience * 2);
  while (arrived < count) {
    host.poll();
    for (const Event& event : host.events) {
      if (event.kind != Kind::notified) continue;
      REQUIRE(event.immediate < count && !seen[event.immediate]);
      seen[event.immediate] = true;
      arrived++;
    }
    std::erase_if(host.events, [](const Event& event) { return event.kind == Kind::notified; });
    REQUIRE_THAT(!deadline.expired(), "{} of {} puts have arrived", arrived, count);
    if (arrived < count) host.sleep(deadline);
  }
  host.await(Kind::message);
  REQUIRE(host.message(peer, "thanks") == Posted::ok);
  host.poll();
  child.must_end();
  host.poll();
  REQUIRE(host.count(Kind::notified) == 0);
}

void large_puts_cross_each_other(const Transport& transport) {
  constexpr size_t kBytes = (size_t{64} << 20) / (kScale * kScale);
  Pair pair(transport, 2 * kBytes);
  fill(pair.a.memory.bytes().first(kBytes), 1);
  fill(pair.b.memory.bytes().first(kBytes), 2);
  REQUIRE(pair.a.put(pair.to_b, {pair.a.region, 0, kBytes}, pair.b.key(), kBytes, 1) == Posted::ok);
  REQUIRE(pair.b.put(pair.to_a, {pair.b.region, 0, kBytes}, pair.a.key(), kBytes, 2) == Posted::ok);
  until({&pair.a, &pair.b},
        [&] { return pair.a.count(Kind::notified) == 1 && pair.b.count(Kind::notified) == 1; });
  REQUIRE(std::memcmp(pair.a.data() + kBytes, pair.b.data(), kBytes) == 0);
  REQUIRE(std::memcmp(pair.b.data() + kBytes, pair.a.data(), kBytes) == 0);
}

void counters_are_exact(const Transport& transport) {
  Pair pair(transport);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 100; i++) {
    REQUIRE(pair.a.put(pair.to_b, pair.from_a(0, i), pair.b.key(), 0, std::nullopt) == Posted::ok);
    bytes += i;
  }
  REQUIRE(pair.a.message(pair.to_b, "one") == Posted::ok);
  const EndpointCounters a = pair.a.worker->counters(pair.to_b);
  REQUIRE(a.puts == 100 && a.put_bytes == bytes && a.messages == 1);
  const EndpointCounters b = pair.b.worker->counters(pair.to_a);
  REQUIRE(b.puts == 0 && b.put_bytes == 0 && b.messages == 0);
}

void many_peers_share_a_worker(const Transport& transport) {
  constexpr uint32_t kPeers = 32, kEach = 50;
  Party hub(transport, kPeers * 64);
  const Blob address = must(hub.worker->listen(0));
  std::vector<std::unique_ptr<Party>> peers;
  std::vector<EndpointId> to_hub;
  for (uint32_t i = 0; i < kPeers; i++) {
    peers.push_back(std::make_unique<Party>(transport));
    to_hub.push_back(must(peers[i]->worker->connect(0, address, {}, {})));
  }
  const auto all_connected = [&] {
    size_t connected = 0;
    for (auto& peer : peers) peer->poll(), connected += peer->count(Kind::connected);
    return connected == kPeers;
  };
  const Deadline deadline(kPatience);
  while (!all_connected() || hub.count(Kind::accepted) != kPeers) {
    hub.poll();
    REQUIRE(!deadline.expired());
  }
  for (uint32_t n = 0; n < kEach; n++)
    for (uint32_t i = 0; i < kPeers; i++)
      until({&hub, peers[i].get()}, [&] {
        return peers[i]->worker->put(to_hub[i], {peers[i]->region, 0, 64}, hub.key(), i * 64,
                                     i * kEach + n, 0) == Posted::ok;
      });
  while (hub.count(Kind::notified) < kPeers * kEach) {
    hub.poll();
    for (auto& peer : peers) peer->poll();
    REQUIRE(!deadline.expired());
  }
  std::vector<int> seen(kPeers * kEach);
  while (const auto event = hub.take(Kind::notified)) seen.at(event->immediate)++;
  for (const int times : seen) REQUIRE(times == 1);
}

// One that never stops putting must not keep the others from being heard.
void a_busy_peer_starves_nobody(const Transport& transport) {
  constexpr size_t kBytes = size_t{1} << 20;
  Child child([&](int socket) { blast(transport, socket, kBytes); });
  Party host(transport, kBytes), quiet(transport);
  receive_visitor(host, child);
  host.await(Kind::notified);
  const EndpointId to_host = must(quiet.worker->connect(0, must(host.worker->listen(0)), {}, {}));
  until({&host, &quiet}, [&] { return quiet.count(Kind::connected) == 1; });
  for (int i = 0; i < 20; i++) {
    REQUIRE(quiet.message(to_host, "here") == Posted::ok);
    int polls = 0;
    const Deadline soon(std::chrono::seconds(2));
    while (!host.take(Kind::message)) {
      quiet.poll();
      host.poll();
      polls++;
      REQUIRE_THAT(!soon.expired(), "a message has not come in {} polls", polls);
    }
    host.events.clear();
  }
}

void ping(const Transport& transport, const Blob& address, int count) {
  Party party(transport);
  const EndpointId peer = must(party.worker->connect(0, address, {}, {}));
  party.await(Kind::connected);
  for (int i = 0; i < count; i++) {
    REQUIRE(party.message(peer, "ping") == Posted::ok);
    party.await(Kind::message);
  }
}

void two_threads_talk_within_a_process(const Transport& transport) {
  const int count = 10000 / kScale;
  Party host(transport);
  const Blob address = must(host.worker->listen(0));
  std::thread other([&] { ping(transport, address, count); });
  const EndpointId peer = host.await(Kind::accepted).endpoint;
  for (int i = 0; i < count; i++) {
    host.await(Kind::message);
    REQUIRE(host.message(peer, "pong") == Posted::ok);
  }
  host.await(Kind::failed);
  other.join();
}

}  // namespace

std::vector<Case> moving_cases() {
  return {
      {"messages keep their order", messages_keep_their_order},
      {"a notification never precedes its bytes", a_notification_never_precedes_its_bytes},
      {"back pressure says again, and all arrives once the receiver polls",
       back_pressure_says_again},
      {"a sender that does not poll is told again", a_sender_that_does_not_poll_is_told_again},
      {"put_done comes once for each put with bytes", put_done_comes_once_for_each_put_with_bytes},
      {"puts without bytes notify", puts_without_bytes_notify},
      {"a million small puts arrive once each, between sleepers",
       a_million_small_puts_arrive_once_each},
      {"large puts cross each other", large_puts_cross_each_other},
      {"counters are exact", counters_are_exact},
      {"32 peers share a worker", many_peers_share_a_worker},
      {"a busy peer starves nobody", a_busy_peer_starves_nobody},
      {"two threads talk within a process", two_threads_talk_within_a_process},
  };
}

}  // namespace crosstie::test
