// SPDX-License-Identifier: Apache-2.0
// How connections end: by close, by fence, by a mistake, by death.
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "party.h"

namespace crosstie::test {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

Posted fence(Party& host, EndpointId peer) {
  return host.insist([&] { return host.worker->fence(peer); });
}

// Nothing changes any more in the memory of a host whose peer would still write to it.
void must_be_still(Party& host) {
  const auto memory = host.memory.bytes();
  const std::vector<std::byte> before(memory.begin(), memory.end());
  usleep(100'000);
  host.poll();
  REQUIRE_THAT(std::equal(memory.begin(), memory.end(), before.begin()), "memory still changes");
}

void a_fence_ends_all_writes(const Transport& transport) {
  Child child([&](int socket) { blast(transport, socket, kLarge); });
  Party host(transport, kLarge);
  const EndpointId peer = receive_visitor(host, child);
  host.await(Kind::notified);
  REQUIRE(fence(host, peer) == Posted::ok);
  host.events.clear();
  must_be_still(host);
  REQUIRE(host.events.empty());
  REQUIRE(host.worker->message(peer, as_bytes("x")) == Posted::error);
  host.worker->close(peer);
  child.must_end();
}

void deregistering_ends_all_writes(const Transport& transport) {
  Child child([&](int socket) { blast(transport, socket, kLarge); });
  Party host(transport, kLarge);
  receive_visitor(host, child);
  host.await(Kind::notified);
  REQUIRE(host.insist([&] { return host.worker->deregister(host.region); }) == Posted::ok);
  must_be_still(host);
  host.await(Kind::failed);
  child.must_end();
  REQUIRE(host.worker->deregister(host.region) == Posted::ok);
}

// A stopped peer may be in the midst of a write: `again`, at once, for as long as that lasts.
bool stopped_within_a_write(const Transport& transport, useconds_t after_us) {
  Child child([&](int socket) { blast(transport, socket, kLarge); });
  Party host(transport, kLarge);
  const EndpointId peer = receive_visitor(host, child);
  host.await(Kind::notified);
  usleep(after_us);
  child.signal(SIGSTOP);
  child.wait_until_stopped();
  const auto begin = Clock::now();
  const Posted answer = host.worker->fence(peer);
  const bool again = answer == Posted::again;
  for (int i = 0; i < 10; i++) REQUIRE(host.worker->fence(peer) == answer);
  REQUIRE(Clock::now() - begin < std::chrono::milliseconds(500));
  child.signal(SIGCONT);
  REQUIRE(fence(host, peer) == Posted::ok);
  must_be_still(host);
  return again;
}

void a_fence_never_waits_for_a_stopped_peer(const Transport& transport) {
  // Over tcp nobody but us writes our memory.
  const bool may_be_within = transport.name == "shm";
  bool again = false;
  for (useconds_t i = 0; i < 40 && !again; i++) {
    again = stopped_within_a_write(transport, i * 100);
    if (!may_be_within) break;
  }
  REQUIRE(again == may_be_within);
}

void must_die_soon(Party& host, const Child& child, EndpointId peer) {
  const auto begin = Clock::now();
  child.signal(SIGKILL);
  const Event event = host.await(Kind::failed);
  REQUIRE(event.endpoint == peer && !event.why.empty());
  REQUIRE(Clock::now() - begin < std::chrono::seconds(2));
  REQUIRE(host.worker->fence(peer) == Posted::ok);
  host.worker->close(peer);
}

void a_killed_peer_is_known_at_once(const Transport& transport) {
  Child child([&](int socket) {
    const Visitor visitor(transport, socket);
    tell(socket, as_bytes("ready"));
    pause();
  });
  Party host(transport);
  const EndpointId peer = receive_visitor(host, child);
  hear(child.socket());
  must_die_soon(host, child, peer);
}

void a_peer_killed_within_a_large_put_is_known_at_once(const Transport& transport) {
  constexpr size_t kHuge = size_t{32} << 20;
  Child child([&](int socket) { blast(transport, socket, kHuge); });
  Party host(transport, kHuge);
  const EndpointId peer = receive_visitor(host, child);
  const Deadline deadline(kPatience);
  while (host.data()[0] == std::byte{0}) {
    host.poll();
    REQUIRE(!deadline.expired());
  }
  must_die_soon(host, child, peer);
}

void close_with_work_posted_waits_for_nobody(const Transport& transport) {
  Pair pair(transport);
  size_t posted = 0;
  while (posted < 100 &&
         pair.a.worker->put(pair.to_b, pair.from_a(0, 4096), pair.b.key(), 0, 1, 0) == Posted::ok)
    posted++;
  REQUIRE(pair.a.worker->message(pair.to_b, as_bytes("last")) != Posted::error);
  pair.a.worker->close(pair.to_b);
  REQUIRE(pair.a.worker->message(pair.to_b, as_bytes("x")) == Posted::error);
  until({&pair.a, &pair.b}, [&] { return pair.b.count(Kind::failed) == 1; });
  REQUIRE(pair.b.count(Kind::notified) <= posted);
  REQUIRE(pair.b.events.back().kind == Kind::failed);
  REQUIRE(pair.b.events.back().why.ends_with("closed by peer"));
  REQUIRE(pair.a.events.empty());
  REQUIRE(pair.b.worker->message(pair.to_a, as_bytes("x")) == Posted::error);
  pair.b.worker->close(pair.to_a);
}

void what_was_received_comes_before_the_end(const Transport& transport) {
  Pair pair(transport);
  for (uint32_t i = 0; i < 50; i++)
    REQUIRE(pair.a.put(pair.to_b, pair.from_a(0, 100), pair.b.key(), 0, i) == Posted::ok);
  pair.a.poll();
  pair.a.worker->close(pair.to_b);
  pair.b.await(Kind::failed);
  REQUIRE(pair.b.count(Kind::notified) == 50);
}

void a_worker_outlives_its_endpoints(const Transport& transport) {
  Pair pair(transport);
  for (int i = 0; i < 3; i++) {
    pair.a.worker->close(pair.to_b);
    pair.b.await(Kind::failed);
    pair.b.worker->close(pair.to_a);
    pair.to_b = must(pair.a.worker->connect(0, must(pair.b.worker->listen(0)), {}, {}));
    until({&pair.a, &pair.b},
          [&] { return pair.a.count(Kind::connected) && pair.b.count(Kind::accepted); });
    REQUIRE(pair.a.take(Kind::connected)->endpoint == pair.to_b);
    pair.to_a = pair.b.take(Kind::accepted)->endpoint;
    REQUIRE(pair.b.put(pair.to_a, {pair.b.region, 0, 8}, pair.a.key(), 0, 5) == Posted::ok);
    until({&pair.a, &pair.b}, [&] { return pair.a.take(Kind::notified).has_value(); });
    pair.b.events.clear();
  }
}

// Both ends fail, with the reason, and nothing has been written.
void must_be_refused(Pair& pair, const Source& source, const Blob& key, uint64_t to,
                     std::string_view reason) {
  fill(pair.a.memory.bytes(), 3);
  const Posted posted = pair.a.insist([&] {
    pair.b.poll();
    return pair.a.worker->put(pair.to_b, source, key, to, 1, 0);
  });
  REQUIRE(posted != Posted::again);
  until({&pair.a, &pair.b},
        [&] { return pair.a.count(Kind::failed) == 1 && pair.b.count(Kind::failed) == 1; });
  const Event a = *pair.a.take(Kind::failed), b = *pair.b.take(Kind::failed);
  REQUIRE_THAT(a.why.find(reason) != std::string::npos, "{}", a.why);
  REQUIRE_THAT(b.why.find(reason) != std::string::npos, "{}", b.why);
  REQUIRE(pair.b.count(Kind::notified) == 0);
  for (const std::byte byte : pair.b.memory.bytes()) REQUIRE(byte == std::byte{0});
}

void a_put_outside_the_region_fails_and_writes_nothing(const Transport& transport) {
  constexpr uint64_t kEnd = ~uint64_t{0};
  const std::pair<uint64_t, uint64_t> wrong[] = {{1024, 1}, {1023, 2},     {0, 1025},
                                                 {kEnd, 1}, {kEnd - 3, 8}, {kEnd - 1023, 1024}};
  for (const auto& [to, bytes] : wrong) {
    Pair pair(transport);
    MemoryView middle = pair.b.memory.view();
    middle.bytes = middle.bytes.subspan(1024, 1024);
    middle.fd_offset = 1024;
    const RegionId region = must(pair.b.worker->register_memory(middle, Access::remote));
    must_be_refused(pair, pair.from_a(0, bytes), pair.b.worker->key(region), to, "outside");
  }
}

void a_put_with_a_wrong_key_fails_and_writes_nothing(const Transport& transport) {
  const Party other(transport);
  const Blob wrong[] = {{}, Blob(16, std::byte{1}), Blob(kMaxBlob, std::byte{0}), other.key()};
  for (const Blob& key : wrong) {
    Pair pair(transport);
    must_be_refused(pair, pair.from_a(0, 8), key, 0, "key");
  }
}

void a_put_from_outside_our_own_region_fails(const Transport& transport) {
  Pair pair(transport);
  must_be_refused(pair, pair.from_a(4090, 8), pair.b.key(), 0, "outside");
  Pair second(transport);
  must_be_refused(second, {static_cast<RegionId>(99), 0, 8}, second.b.key(), 0, "not registered");
}

void a_put_into_a_deregistered_region_fails(const Transport& transport) {
  Pair pair(transport);
  const Blob key = pair.b.key();
  // Known to the peer first.
  REQUIRE(pair.a.put(pair.to_b, pair.from_a(0, 8), key, 0, 1) == Posted::ok);
  until({&pair.a, &pair.b}, [&] { return pair.b.take(Kind::notified).has_value(); });
  REQUIRE(pair.b.worker->deregister(pair.b.region) == Posted::ok);
  REQUIRE(pair.b.key().empty());
  must_be_refused(pair, pair.from_a(0, 8), key, 0, "not open to peers");
}

void regions_for_our_own_puts_have_no_key(const Transport& transport) {
  Party party(transport);
  std::vector<std::byte> plain(64);
  const RegionId local = must(party.worker->register_memory({plain}, Access::local));
  REQUIRE(party.worker->key(local).empty());
  const auto remote = party.worker->register_memory({plain}, Access::remote);
  REQUIRE(remote ? !party.worker->key(*remote).empty() : remote.error().code == Code::unsupported);
}

void messages_of_a_wrong_size_fail(const Transport& transport) {
  for (const size_t bytes : {size_t{0}, kMaxMessage + 1}) {
    Pair pair(transport);
    REQUIRE(pair.a.worker->message(pair.to_b, Blob(bytes)) == Posted::error);
    REQUIRE(pair.a.await(Kind::failed).endpoint == pair.to_b);
  }
}

// What a refused caller needed may come in the poll before it arms; and it may lose interest.
void a_refusal_that_has_passed_keeps_nobody_asleep(const Transport& transport) {
  Pair pair(transport);
  const Blob key = pair.b.key();
  const auto post = [&] {
    return pair.a.worker->put(pair.to_b, pair.from_a(0, 1024), key, 0, 1, 0);
  };
  Deadline still(std::chrono::milliseconds(100));
  while (!still.expired()) {
    if (post() == Posted::ok) still = Deadline(std::chrono::milliseconds(100));
    pair.a.poll();
  }
  REQUIRE(post() == Posted::again);
  const Deadline deadline(kPatience);
  for (bool asleep = false, posted = false; !posted;) {
    pair.b.poll();
    pair.a.poll();
    asleep = pair.a.worker->arm();
    posted = post() == Posted::ok;
    REQUIRE_THAT(!(asleep && posted), "it would sleep though there is room");
    REQUIRE(!deadline.expired());
  }
  int polls = 0;
  while (!pair.a.worker->arm() || !pair.b.worker->arm()) {
    REQUIRE_THAT(++polls < 10000, "a worker with nothing to do never sleeps");
    pair.b.poll();
    pair.a.poll();
  }
}

}  // namespace

std::vector<Case> ending_cases() {
  return {
      {"a fence ends all writes", a_fence_ends_all_writes},
      {"deregistering ends all writes", deregistering_ends_all_writes},
      {"a fence never waits for a stopped peer", a_fence_never_waits_for_a_stopped_peer},
      {"a killed peer is known at once", a_killed_peer_is_known_at_once},
      {"a peer killed within a large put is known at once",
       a_peer_killed_within_a_large_put_is_known_at_once},
      {"close with work posted waits for nobody", close_with_work_posted_waits_for_nobody},
      {"what was received comes before the end", what_was_received_comes_before_the_end},
      {"a worker outlives its endpoints", a_worker_outlives_its_endpoints},
      {"a put outside the region fails and writes nothing",
       a_put_outside_the_region_fails_and_writes_nothing},
      {"a put with a wrong key fails and writes nothing",
       a_put_with_a_wrong_key_fails_and_writes_nothing},
      {"a put from outside our own region fails", a_put_from_outside_our_own_region_fails},
      {"a put into a deregistered region fails", a_put_into_a_deregistered_region_fails},
      {"regions for our own puts have no key", regions_for_our_own_puts_have_no_key},
      {"messages of a wrong size fail", messages_of_a_wrong_size_fail},
      {"a refusal that has passed keeps nobody asleep",
       a_refusal_that_has_passed_keeps_nobody_asleep},
  };
}

}  // namespace crosstie::test
