// SPDX-License-Identifier: Apache-2.0
// One side of a conversation in the tests: a Worker, its events, and memory open to the peer.
// It sleeps on the Worker's descriptor whenever it waits, so a lost wake-up shows as a timeout.
#pragma once
#include <poll.h>

#include <cstring>
#include <deque>

#include "memory/buffer.h"
#include "suite.h"

namespace crosstie::test {

inline constexpr auto kPatience = std::chrono::seconds(10);
using Kind = Event::Kind;

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Party {
 public:
  explicit Party(const Transport& transport, size_t bytes = 4096,
                 TransportOptions options = default_options())
      : worker(must(transport.make(options))), memory(must(Buffer::allocate(bytes, "test"))) {
    region = must(worker->register_memory(memory.view(), Access::remote));
  }

  void poll() {
    std::vector<Event> fresh;
    must(worker->poll(fresh));
    std::move(fresh.begin(), fresh.end(), std::back_inserter(events));
  }
  // Until this Worker has something to say, or the deadline.
  void sleep(Deadline deadline) {
    if (!worker->arm()) return;
    pollfd waiting = {worker->fd(), POLLIN, 0};
    REQUIRE_THAT(::poll(&waiting, 1, deadline.poll_ms()) > 0, "nothing woke this side{}", said());
  }
  // The next event of this kind; others stay.
  Event await(Kind kind) {
    const Deadline deadline(kPatience);
    for (;;) {
      poll();
      if (auto event = take(kind)) return std::move(*event);
      REQUIRE_THAT(!deadline.expired(), "no event of kind {} came{}", static_cast<int>(kind),
                   said());
      sleep(deadline);
    }
  }
  std::optional<Event> take(Kind kind) {
    for (auto it = events.begin(); it != events.end(); ++it)
      if (it->kind == kind) {
        Event event = std::move(*it);
        events.erase(it);
        return event;
      }
    return std::nullopt;
  }
  size_t count(Kind kind) const {
    size_t n = 0;
    for (const Event& event : events) n += event.kind == kind;
    return n;
  }
  // Tries until the answer is not `again`.
  template <class Call>
  Posted insist(Call&& call) {
    const Deadline deadline(kPatience);
    for (;;) {
      const Posted posted = call();
      if (posted != Posted::again) return posted;
      REQUIRE_THAT(!deadline.expired(), "the answer stays `again`{}", said());
      poll();
      sleep(deadline);
    }
  }
  Posted put(EndpointId to, Source source, std::span<const std::byte> key, uint64_t at,
             std::optional<uint32_t> immediate, uint64_t context = 0) {
    return insist([&] { return worker->put(to, source, key, at, immediate, context); });
  }
  Posted message(EndpointId to, std::string_view text) {
    return insist([&] { return worker->message(to, as_bytes(text)); });
  }
  Blob key() const { return worker->key(region); }
  std::byte* data() const { return memory.bytes().data(); }

  std::unique_ptr<Worker> worker;
  Buffer memory;
  RegionId region{};
  std::deque<Event> events;

 private:
  std::string said() const {
    std::string text;
    for (const Event& event : events)
      if (event.kind == Kind::failed) text += "; " + event.why;
    return text;
  }
};

// Polls all until `done`; sleeps on all their descriptors in between.
template <class Done>
void until(std::initializer_list<Party*> parties, Done&& done) {
  const Deadline deadline(kPatience);
  for (;;) {
    for (Party* party : parties) party->poll();
    if (done()) return;
    REQUIRE_THAT(!deadline.expired(), "what was awaited did not happen");
    std::vector<pollfd> waiting;
    for (Party* party : parties)
      if (party->worker->arm()) waiting.push_back({party->worker->fd(), POLLIN, 0});
    if (waiting.size() == parties.size())
      REQUIRE_THAT(::poll(waiting.data(), waiting.size(), deadline.poll_ms()) > 0,
                   "nothing woke any side");
  }
}

// Two in one process, connected.
struct Pair {
  explicit Pair(const Transport& transport, size_t bytes = 4096,
                TransportOptions options = default_options())
      : a(transport, bytes, options), b(transport, bytes, options) {
    to_b = must(a.worker->connect(0, must(b.worker->listen(0)), as_bytes("hello"), {}));
    until({&a, &b}, [&] { return a.count(Kind::connected) && b.count(Kind::accepted); });
    REQUIRE(a.take(Kind::connected)->endpoint == to_b);
    const Event accepted = *b.take(Kind::accepted);
    REQUIRE(as_text(accepted.bytes) == "hello");
    to_a = accepted.endpoint;
  }
  // From the same place of the one memory to that of the other.
  Source from_a(uint64_t at, uint64_t bytes) const { return {a.region, at, bytes}; }

  Party a, b;
  EndpointId to_b{}, to_a{};
};

// In a child: connects to the parent's Worker and learns the key of its memory.
struct Visitor : Party {
  Visitor(const Transport& transport, int socket, size_t bytes = 4096,
          TransportOptions options = default_options())
      : Party(transport, bytes, options) {
    const Blob address = hear(socket);
    peer_key = hear(socket);
    peer = must(worker->connect(0, address, {}, {}));
    await(Kind::connected);
  }
  EndpointId peer{};
  Blob peer_key;
};
// In the parent.
inline EndpointId receive_visitor(Party& host, const Child& child) {
  tell(child.socket(), must(host.worker->listen(0)));
  tell(child.socket(), host.key());
  return host.await(Kind::accepted).endpoint;
}

// In a child: one large put after the other, each of other bytes, until the host has enough.
inline void blast(const Transport& transport, int socket, size_t bytes) {
  Visitor visitor(transport, socket, bytes);
  for (int i = 1;; i++) {
    std::memset(visitor.data(), i % 255 + 1, bytes);
    if (visitor.put(visitor.peer, {visitor.region, 0, bytes}, visitor.peer_key, 0, 1) != Posted::ok)
      break;
    until({&visitor}, [&] { return !visitor.events.empty(); });
    if (!visitor.take(Kind::put_done)) break;
  }
  visitor.await(Kind::failed);
}

inline void fill(std::span<std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); i++)
    bytes[i] = static_cast<std::byte>((seed * 2654435761u + i * 40503u) >> 11);
}
inline bool filled(std::span<const std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); i++)
    if (bytes[i] != static_cast<std::byte>((seed * 2654435761u + i * 40503u) >> 11)) return false;
  return true;
}

}  // namespace crosstie::test
