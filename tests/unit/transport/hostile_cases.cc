// SPDX-License-Identifier: Apache-2.0
// Peers that complete the handshake and then break the protocol.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <new>

#include "party.h"
#include "strangers.h"
#include "transport/shm_ring.h"
#include "transport/wire/frame.h"
#include "transport/wire/key.h"

namespace crosstie::test {
namespace {

using wire::Frame;
using wire::Packet;

void must_be_zero(const Party& host) {
  for (const std::byte byte : host.memory.bytes()) REQUIRE(byte == std::byte{0});
}

// A TCP connection past its handshake.
Fd tcp_guest(Party& host, const Transport& transport) {
  const Blob address = must(host.worker->listen(0));
  wire::TcpAddress to;
  REQUIRE(wire::read(address, to));
  Fd socket = call(transport, address);
  wire::Hello hello;
  hello.to = to.worker;
  tell(socket.get(), wire::bytes_of(hello));
  host.await(Kind::accepted);
  wire::Welcome welcome;
  REQUIRE(recv(socket.get(), &welcome, sizeof welcome, 0) == sizeof welcome);
  return socket;
}

uint32_t region_number(const Party& host) {
  wire::Key key;
  REQUIRE(wire::read(host.key(), key));
  return key.region;
}

void tcp_frames_that_break_the_protocol_fail(const Transport& transport) {
  const auto wrong = [](auto&& change) {
    Frame frame;
    frame.region = 1;
    frame.bytes = 8;
    change(frame);
    return frame;
  };
  const Frame frames[] = {
      wrong([](Frame& f) { f.magic = 0x1234; }),
      wrong([](Frame& f) { f.kind = static_cast<Frame::Kind>(9); }),
      wrong([](Frame& f) { f.region = 99; }),
      wrong([](Frame& f) { f.offset = 4089; }),
      wrong([](Frame& f) { f.offset = ~uint64_t{0} - 3; }),
      wrong([](Frame& f) { f.bytes = ~uint64_t{0}; }),
      wrong([](Frame& f) { f.kind = Frame::Kind::message, f.bytes = kMaxMessage + 1; }),
      wrong([](Frame& f) { f.kind = Frame::Kind::goodbye, f.bytes = uint64_t{1} << 40; }),
  };
  for (const Frame& frame : frames) {
    Party host(transport);
    REQUIRE(region_number(host) == 1);
    const Fd guest = tcp_guest(host, transport);
    tell(guest.get(), wire::bytes_of(frame));
    tell(guest.get(), Blob(8, std::byte{0xff}));
    REQUIRE(!host.await(Kind::failed).why.empty());
    must_be_zero(host);
  }
}

void a_tcp_stream_may_come_byte_by_byte(const Transport& transport) {
  Party host(transport);
  const Fd guest = tcp_guest(host, transport);
  Frame frame;
  frame.region = region_number(host);
  frame.bytes = 5;
  frame.offset = 10;
  frame.notifies = 1;
  frame.immediate = 77;
  Blob stream = wire::blob_of(frame);
  for (const std::byte byte : as_bytes("bytes")) stream.push_back(byte);
  for (const std::byte byte : stream) {
    REQUIRE(host.count(Kind::notified) == 0);
    tell(guest.get(), std::span(&byte, 1));
    host.poll();
  }
  REQUIRE(host.await(Kind::notified).immediate == 77);
  REQUIRE(as_text(host.memory.bytes().subspan(10, 5)) == "bytes");
}

void a_tcp_stream_that_ends_within_a_put_fails(const Transport& transport) {
  Party host(transport);
  Fd guest = tcp_guest(host, transport);
  Frame frame;
  frame.region = region_number(host);
  frame.bytes = 4096;
  frame.notifies = 1;
  tell(guest.get(), wire::bytes_of(frame));
  tell(guest.get(), Blob(100, std::byte{1}));
  guest.reset();
  REQUIRE(host.await(Kind::failed).why.find("within a frame") != std::string::npos);
  REQUIRE(host.count(Kind::notified) == 0);
}

void a_tcp_peer_of_another_version_is_told(const Transport& transport) {
  Party host(transport);
  const Blob address = must(host.worker->listen(0));
  const Fd guest = call(transport, address);
  wire::Hello hello;
  hello.version = 99;
  tell(guest.get(), wire::bytes_of(hello));
  wire::Welcome welcome;
  const Deadline deadline(kPatience);
  while (recv(guest.get(), &welcome, sizeof welcome, 0) != sizeof welcome) {
    host.poll();
    REQUIRE(!deadline.expired());
  }
  REQUIRE(welcome.version == wire::kVersion && welcome.accepted == 0);
}

void a_reused_tcp_port_is_not_taken_for_its_former_owner(const Transport& transport) {
  Party host(transport), guest(transport);
  Blob address = must(host.worker->listen(0));
  wire::TcpAddress former;
  REQUIRE(wire::read(address, former));
  former.worker ^= 1;
  must(guest.worker->connect(0, wire::blob_of(former), {}, {}));
  until({&host, &guest}, [&] { return guest.count(Kind::failed) == 1; });
  REQUIRE(guest.take(Kind::failed)->why.find("is gone") != std::string::npos);
  REQUIRE(host.count(Kind::accepted) == 0);
}

Fd make_bell() { return Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

// A shm peer made by hand, past its handshake.
struct ShmGuest {
  static constexpr uint64_t kEntries = 64;

  ShmGuest(Party& host, const Transport& transport) {
    const Blob address = must(host.worker->listen(0));
    socket = call(transport, address);
    const Fd own_bell = make_bell();
    const int descriptors[] = {rings.fd(), own_bell.get()};
    must(send_packet(socket.get(), hello(address), descriptors));
    host.await(Kind::accepted);
    bell = std::move(hear_packet().descriptors.at(0));
    hear_packet();  // the host's region
  }
  static Packet hello(const Blob& address) {
    wire::ShmAddress to;
    REQUIRE(wire::read(address, to));
    Packet packet;
    packet.to = to.worker;
    packet.ring = kEntries;
    return packet;
  }
  Received hear_packet() const {
    Received received = must(receive_packet(socket.get()));
    REQUIRE(received.what == Received::What::packet);
    return received;
  }
  // What this side writes: the ring to the host, and the host's ring's taken index.
  ShmHalf& out() const { return *reinterpret_cast<ShmHalf*>(rings.bytes().data()); }
  ShmHalf& in() const {
    return *reinterpret_cast<ShmHalf*>(rings.bytes().data() + half_bytes(kEntries));
  }
  void put_entry(uint32_t kind, uint32_t value) const {
    const ShmEntry entry = {static_cast<ShmEntry::Kind>(kind), value};
    ShmRing(rings.bytes().data(), kEntries).store(0, std::as_bytes(std::span(&entry, 1)));
  }
  void wake() const {
    const uint64_t one = 1;
    REQUIRE(write(bell.get(), &one, sizeof one) == sizeof one);
  }

  Buffer rings = must(Buffer::allocate(2 * half_bytes(kEntries), "guest"));
  Fd socket, bell;
};

void a_corrupt_shm_ring_fails(const Transport& transport) {
  const std::function<void(const ShmGuest&)> corruptions[] = {
      [](const ShmGuest& g) { g.out().pushed = uint64_t{1} << 40; },
      [](const ShmGuest& g) { g.out().pushed = ShmGuest::kEntries + 1; },
      [](const ShmGuest& g) { g.out().pushed = ~uint64_t{0}; },
      [](const ShmGuest& g) { g.put_entry(9, 0), g.out().pushed = 1; },
      [](const ShmGuest& g) { g.put_entry(2, 5000), g.out().pushed = 1; },
      [](const ShmGuest& g) { g.put_entry(2, 0xffffffff), g.out().pushed = 64; },
      [](const ShmGuest& g) { g.put_entry(2, 0), g.out().pushed = 1; },
      [](const ShmGuest& g) { g.put_entry(2, 200), g.out().pushed = 1; },
  };
  for (const auto& corrupt : corruptions) {
    Party host(transport);
    const ShmGuest guest(host, transport);
    corrupt(guest);
    guest.wake();
    REQUIRE(host.await(Kind::failed).why.find("corrupt") != std::string::npos);
    REQUIRE(host.count(Kind::message) == 0 && host.count(Kind::notified) == 0);
  }
}

void a_corrupt_index_of_the_reader_fails(const Transport& transport) {
  Party host(transport);
  const Blob address = must(host.worker->listen(0));
  const ShmGuest guest(host, transport);
  guest.in().taken = uint64_t{1} << 40;
  // The only endpoint of this worker.
  const auto peer = static_cast<EndpointId>(1);
  Posted posted = Posted::ok;
  for (uint64_t i = 0; i <= ShmGuest::kEntries && posted == Posted::ok; i++)
    posted = host.worker->put(peer, {}, {}, 0, 1, 0);
  REQUIRE(posted == Posted::error);
  REQUIRE(host.await(Kind::failed).why.find("corrupt") != std::string::npos);
}

Fd unsealed_memory(size_t bytes) {
  Fd fd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  return fd;
}

void must_be_turned_away(const Transport& transport, Packet (*change)(Packet),
                         std::vector<int> descriptors) {
  Party host(transport);
  const Blob address = must(host.worker->listen(0));
  const Fd guest = call(transport, address);
  must(send_packet(guest.get(), change(ShmGuest::hello(address)), descriptors));
  const Deadline deadline(kPatience);
  for (;;) {
    host.poll();
    const auto received = receive_packet(guest.get());
    if (!received || received->what == Received::What::ended) break;
    REQUIRE(received->what == Received::What::nothing && !deadline.expired());
  }
  REQUIRE(host.events.empty());
}

void shm_hellos_that_are_wrong_are_turned_away(const Transport& transport) {
  const auto same = [](Packet p) { return p; };
  const Buffer rings = must(Buffer::allocate(2 * half_bytes(64), "guest"));
  const Buffer small = must(Buffer::allocate(4096, "guest"));
  const Fd unsealed = unsealed_memory(2 * half_bytes(64));
  const Fd own_bell = make_bell();
  const int bell = own_bell.get();
  must_be_turned_away(transport, same, {});
  must_be_turned_away(transport, same, {rings.fd()});
  must_be_turned_away(transport, same, {rings.fd(), rings.fd()});
  must_be_turned_away(transport, same, {unsealed.get(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.ring = 1024, p; }, {small.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.ring = 63, p; }, {rings.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.ring = 1u << 31, p; }, {rings.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.to ^= 1, p; }, {rings.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.text_bytes = 65, p; }, {rings.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.version = 9, p; }, {rings.fd(), bell});
  must_be_turned_away(transport, [](Packet p) { return p.kind = Packet::Kind::region, p; },
                      {rings.fd(), bell});
}

void shm_regions_that_are_wrong_fail(const Transport& transport) {
  const Buffer memory = must(Buffer::allocate(4096, "guest"));
  const Fd unsealed = unsealed_memory(4096);
  const auto announce = [&](uint64_t offset, uint64_t bytes, std::vector<int> descriptors) {
    Party host(transport);
    const ShmGuest guest(host, transport);
    Packet packet;
    packet.kind = Packet::Kind::region;
    packet.region = 1;
    packet.offset = offset;
    packet.bytes = bytes;
    must(send_packet(guest.socket.get(), packet, descriptors));
    REQUIRE(!host.await(Kind::failed).why.empty());
  };
  announce(0, 4096, {});
  announce(0, 4096, {unsealed.get()});
  announce(0, 4097, {memory.fd()});
  announce(~uint64_t{0}, 2, {memory.fd()});
}

}  // namespace

std::vector<Case> hostile_cases() {
  return {
      {"frames that break the protocol fail", tcp_frames_that_break_the_protocol_fail, "tcp"},
      {"a stream may come byte by byte", a_tcp_stream_may_come_byte_by_byte, "tcp"},
      {"a stream that ends within a put fails", a_tcp_stream_that_ends_within_a_put_fails, "tcp"},
      {"a peer of another version is told", a_tcp_peer_of_another_version_is_told, "tcp"},
      {"a reused port is not taken for its former owner",
       a_reused_tcp_port_is_not_taken_for_its_former_owner, "tcp"},
      {"a corrupt ring fails", a_corrupt_shm_ring_fails, "shm"},
      {"a corrupt index of the reader fails", a_corrupt_index_of_the_reader_fails, "shm"},
      {"hellos that are wrong are turned away", shm_hellos_that_are_wrong_are_turned_away, "shm"},
      {"regions that are wrong fail", shm_regions_that_are_wrong_fail, "shm"},
  };
}

}  // namespace crosstie::test
