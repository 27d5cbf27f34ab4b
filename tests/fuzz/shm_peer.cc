// SPDX-License-Identifier: Apache-2.0
// A process of the same host says hello rightly and then anything: packets with descriptors over
// the socket, words and entries in the shared ring. The worker writes nowhere it should not,
// blocks nowhere, and says nothing that was not there.
#include <sys/eventfd.h>

#include <algorithm>

#include "memory/buffer.h"
#include "target.h"
#include "transport/events.h"
#include "transport/options.h"
#include "transport/shm.h"
#include "transport/shm_ring.h"
#include "transport/unix_socket.h"

using namespace crosstie;

namespace {

constexpr uint64_t kEntries = 64;

template <class T>
T must(Result<T> result) {
  PROMISE(result.has_value());
  return std::move(*result);
}

// A worker with a region, and a peer made by hand that has said hello.
struct Scene {
  Scene() {
    region = worker->register_memory(memory.view(), Access::remote).value();
    const Blob blob = must(worker->listen(0));
    wire::ShmAddress address;
    PROMISE(wire::read(blob, address));
    socket = must(dial_unix(address.name));
    wire::Packet hello;
    hello.to = address.worker;
    hello.ring = kEntries;
    const int descriptors[] = {rings.fd(), bell.get()};
    PROMISE(send_packet(socket.get(), hello, descriptors).has_value());
    for (int i = 0; i < 10 && events.empty(); i++) poll();
    PROMISE(!events.empty() && events[0].kind == Event::Kind::accepted);
  }
  void poll() { PROMISE(worker->poll(events).has_value()); }
  void ring_bell() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell.get(), &one, sizeof one);
  }

  std::unique_ptr<Worker> worker = must(
      make_shm_worker(must(read_options<TransportOptions>(kTransportRows, Environment())), Log()));
  Buffer memory = must(Buffer::allocate(4096, "fuzz"));
  Buffer rings = must(Buffer::allocate(2 * half_bytes(kEntries), "fuzz"));
  Fd bell{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  RegionId region{};
  Fd socket;
  std::vector<Event> events;
};

// The front of a piece says where it goes: a packet with some descriptors, or bytes of the rings.
void say_piece(Scene& scene, std::string_view piece) {
  const uint8_t how = static_cast<uint8_t>(piece[0]);
  piece.remove_prefix(1);
  if (how % 2 == 0) {
    wire::Packet packet;
    std::memcpy(static_cast<void*>(&packet), piece.data(), std::min(piece.size(), sizeof packet));
    const int descriptors[] = {scene.memory.fd(), scene.bell.get()};
    [[maybe_unused]] const auto sent =
        send_packet(scene.socket.get(), packet, std::span(descriptors).first(how / 2 % 3));
  } else {
    const auto rings = scene.rings.bytes();
    const size_t at = static_cast<size_t>(how / 2) * 8;
    std::memcpy(rings.data() + at, piece.data(), std::min(piece.size(), rings.size() - at));
    scene.ring_bell();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Scene scene;
  std::string_view rest = fuzz::text_of(data, size);
  while (!rest.empty()) {
    // Two bytes of length, so that a piece may be a packet or a ring.
    const size_t bytes = rest.size() < 3 ? 0
                                         : static_cast<uint8_t>(rest[0]) +
                                               size_t{256} * static_cast<uint8_t>(rest[1]);
    rest.remove_prefix(std::min<size_t>(2, rest.size()));
    const std::string_view piece = rest.substr(0, 1 + bytes);
    if (!piece.empty()) say_piece(scene, piece);
    rest.remove_prefix(piece.size());
    for (int i = 0; i < 2; i++) scene.poll();
  }
  for (const Event& event : scene.events) PROMISE(event.bytes.size() <= kMaxMessage);
  for (const std::byte byte : scene.memory.bytes()) PROMISE(byte == std::byte{0});
  return 0;
}
