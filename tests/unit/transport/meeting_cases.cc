// SPDX-License-Identifier: Apache-2.0
// How Workers meet, and whom they do not let in.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "party.h"
#include "strangers.h"

namespace crosstie::test {
namespace {

TransportOptions impatient(std::chrono::milliseconds timeout) {
  TransportOptions options = default_options();
  options.handshake_timeout = timeout;
  return options;
}

void a_dead_address_is_known_and_named(const Transport& transport) {
  Party party(transport, 64, impatient(std::chrono::milliseconds(1000)));
  const Blob address = must(Party(transport).worker->listen(0));
  const auto begin = Clock::now();
  const auto endpoint = party.worker->connect(0, address, {}, {});
  const std::string why = endpoint ? party.await(Kind::failed).why : endpoint.error().text;
  REQUIRE(Clock::now() - begin < std::chrono::seconds(2));
  REQUIRE_THAT(why.starts_with(transport.name == "tcp" ? "127.0.0.1:" : "shm worker "), "{}", why);
}

void a_silent_address_fails_by_the_deadline(const Transport& transport) {
  Party party(transport, 64, impatient(std::chrono::milliseconds(200)));
  const Party silent(transport);
  const auto begin = Clock::now();
  const EndpointId endpoint =
      must(party.worker->connect(0, must(silent.worker->listen(0)), {}, {}));
  REQUIRE(party.worker->message(endpoint, as_bytes("early")) == Posted::again);
  const Event event = party.await(Kind::failed);
  const auto took = Clock::now() - begin;
  REQUIRE(event.endpoint == endpoint && event.why.find("200ms") != std::string::npos);
  REQUIRE(took >= std::chrono::milliseconds(200) && took < std::chrono::seconds(2));
}

void a_foreign_address_fails_at_once(const Transport& transport) {
  Party party(transport);
  std::vector<Blob> foreign = {
      {}, Blob(5, std::byte{1}), Blob(32, std::byte{0}), Blob(kMaxBlob, std::byte{0x58})};
  for (const Transport& other : transports())
    if (other.name != transport.name) foreign.push_back(must(Party(other).worker->listen(0)));
  foreign.push_back(must(party.worker->listen(0)));
  foreign.back().pop_back();
  for (const Blob& address : foreign) {
    const auto endpoint = party.worker->connect(0, address, {}, {});
    REQUIRE(!endpoint && endpoint.error().code == Code::invalid);
  }
}

void an_address_is_within_its_limit_and_stays(const Transport& transport) {
  const Party party(transport);
  const Blob address = must(party.worker->listen(0));
  REQUIRE(address.size() <= kMaxBlob && party.key().size() <= kMaxBlob);
  REQUIRE(must(party.worker->listen(0)) == address);
}

void a_hello_is_handed_over_whole(const Transport& transport) {
  for (const size_t bytes : {size_t{0}, kMaxHello}) {
    Party a(transport), b(transport);
    Blob hello(bytes);
    fill(hello, 5);
    must(a.worker->connect(0, must(b.worker->listen(0)), hello, {}));
    until({&a, &b}, [&] { return a.count(Kind::connected) && b.count(Kind::accepted); });
    REQUIRE(b.take(Kind::accepted)->bytes == hello);
  }
  Party party(transport);
  REQUIRE(!party.worker->connect(0, must(party.worker->listen(0)), Blob(kMaxHello + 1), {}));
}

void a_worker_can_talk_to_itself(const Transport& transport) {
  Party party(transport);
  const EndpointId out = must(party.worker->connect(0, must(party.worker->listen(0)), {}, {}));
  const EndpointId in = party.await(Kind::accepted).endpoint;
  party.await(Kind::connected);
  REQUIRE(in != out);
  party.data()[0] = std::byte{7};
  REQUIRE(party.put(out, {party.region, 0, 1}, party.key(), 1, 3) == Posted::ok);
  REQUIRE(party.await(Kind::notified).endpoint == in && party.data()[1] == std::byte{7});
}

// Port scanners and the like: none may keep a peer out, or stay.
void strangers_keep_nobody_out(const Transport& transport) {
  Party host(transport, 4096, impatient(std::chrono::milliseconds(500)));
  const Blob address = must(host.worker->listen(0));
  const int before = open_descriptors();
  std::vector<Fd> strangers;
  for (int i = 0; i < 10; i++)
    for (const std::string_view says : {"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "XH", "XHLO"}) {
      strangers.push_back(call(transport, address));
      if (!says.empty()) send(strangers.back().get(), says.data(), says.size(), MSG_NOSIGNAL);
      if (i % 2) strangers.back().reset();
    }
  const auto begin = Clock::now();
  {
    Party real(transport);
    for (int i = 0; i < 10; i++) {
      must(real.worker->connect(0, address, {}, {}));
      until({&host, &real}, [&] { return real.take(Kind::connected).has_value(); });
    }
    REQUIRE(Clock::now() - begin < std::chrono::milliseconds(500));
  }
  until({&host}, [&] { return host.count(Kind::failed) == 10; });
  while (const auto event = host.take(Kind::accepted)) host.worker->close(event->endpoint);
  strangers.clear();
  host.events.clear();
  const Deadline deadline(kPatience);
  while (open_descriptors() != before) {
    host.poll();
    REQUIRE_THAT(!deadline.expired(), "{} descriptors stay", open_descriptors() - before);
  }
  REQUIRE(host.events.empty());
}

void silent_strangers_are_turned_away(const Transport& transport) {
  Party host(transport, 64, impatient(std::chrono::milliseconds(200)));
  const Blob address = must(host.worker->listen(0));
  std::vector<Fd> strangers;
  for (int i = 0; i < 5; i++) strangers.push_back(call(transport, address));
  const int before = open_descriptors();
  const Deadline deadline(std::chrono::seconds(3));
  bool came = false;
  while (!came || open_descriptors() != before) {
    host.poll();
    came = came || open_descriptors() == before + 5;
    REQUIRE(!deadline.expired());
  }
  REQUIRE(host.events.empty());
}

// Accepting cannot go on, and the listener must not keep its owner awake for that.
[[maybe_unused]] void running_out_of_descriptors_is_survived(const Transport& transport) {
  Party host(transport), real(transport);
  const Blob address = must(host.worker->listen(0));
  Fd stranger = call(transport, address);
  must(real.worker->connect(0, address, {}, {}));
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 3;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  int woken = 0;
  for (const Deadline deadline(std::chrono::milliseconds(500)); !deadline.expired(); woken++) {
    host.poll();
    pollfd waiting = {host.worker->fd(), POLLIN, 0};
    if (host.worker->arm()) ::poll(&waiting, 1, deadline.poll_ms());
  }
  REQUIRE_THAT(woken < 50, "woken {} times for nothing", woken);
  limit.rlim_cur = before;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  until({&host, &real}, [&] { return real.count(Kind::connected) && host.count(Kind::accepted); });
}

void no_descriptor_is_left(const Transport& transport) {
  const int before = open_descriptors();
  for (int i = 0; i < 10; i++) {
    Pair pair(transport);
    REQUIRE(pair.a.put(pair.to_b, pair.from_a(0, 8), pair.b.key(), 0, 1) == Posted::ok);
    until({&pair.a, &pair.b}, [&] { return pair.b.count(Kind::notified) == 1; });
    if (i % 2) pair.a.worker->close(pair.to_b);
  }
  REQUIRE(open_descriptors() == before);
  Pair pair(transport);
  const Blob address = must(pair.a.worker->listen(0));
  const int two = open_descriptors();
  for (int i = 0; i < 10; i++) {
    Party third(transport);
    must(third.worker->connect(0, address, {}, {}));
    until({&pair.a, &third}, [&] { return third.count(Kind::connected) == 1; });
    pair.a.worker->close(pair.a.take(Kind::accepted)->endpoint);
  }
  REQUIRE(open_descriptors() == two);
}

// One thread at a time, but not always the same.
void a_worker_may_move_between_threads(const Transport& transport) {
  Pair pair(transport);
  const int count = 1000 / kScale;
  std::mutex turn;
  int sent = 0, heard = 0;
  const auto work = [&] {
    const Deadline deadline(kPatience);
    for (;;) {
      const std::lock_guard lock(turn);
      if (heard == count) return;
      if (sent < count && pair.a.worker->message(pair.to_b, as_bytes("m")) == Posted::ok) sent++;
      pair.a.poll();
      pair.b.poll();
      while (pair.b.take(Kind::message)) heard++;
      REQUIRE(!deadline.expired());
    }
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  REQUIRE(sent == count && heard == count);
}

void options_out_of_range_are_refused(const Transport& transport) {
  for (const int depth : {0, -1, 65537}) {
    TransportOptions options = default_options();
    options.queue_depth = depth;
    REQUIRE(!transport.make(options));
  }
  for (const int ring : {0, 32, 100, 131072}) {
    TransportOptions options = default_options();
    options.shm_ring = ring;
    REQUIRE(!transport.make(options));
  }
}

}  // namespace

std::vector<Case> meeting_cases() {
  return {
      {"a dead address is known and named", a_dead_address_is_known_and_named},
      {"a silent address fails by the deadline", a_silent_address_fails_by_the_deadline},
      {"a foreign address fails at once", a_foreign_address_fails_at_once},
      {"an address is within its limit and stays", an_address_is_within_its_limit_and_stays},
      {"a hello is handed over whole", a_hello_is_handed_over_whole},
      {"a worker can talk to itself", a_worker_can_talk_to_itself},
      {"strangers keep nobody out", strangers_keep_nobody_out},
      {"silent strangers are turned away", silent_strangers_are_turned_away},
#ifndef __SANITIZE_ADDRESS__  // which needs descriptors of its own for its checks
      {"running out of descriptors is survived", running_out_of_descriptors_is_survived},
#endif
      {"no descriptor is left", no_descriptor_is_left},
      {"a worker may move between threads", a_worker_may_move_between_threads},
      {"options out of range are refused", options_out_of_range_are_refused},
  };
}

}  // namespace crosstie::test
