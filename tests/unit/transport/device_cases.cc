// SPDX-License-Identifier: Apache-2.0
// Where a Worker goes out, how its packets are marked, and memory registered beside its thread.
#include <netinet/in.h>

#include <atomic>
#include <thread>

#include "party.h"
#include "transport/tcp_devices.h"
#include "transport/tcp_socket.h"

namespace crosstie::test {
namespace {

void loopback_is_the_last_resort(const Transport&) {
  const auto devices = must(tcp_devices(""));
  REQUIRE(!devices.empty());
  bool loopback = false;
  for (const TcpDevice& device : devices) {
    const bool is = device.device.name == "lo";
    REQUIRE_THAT(is || !loopback, "{} follows lo", device.device.name);
    loopback = is;
  }
}

void a_filter_that_leaves_nothing_names_what_there_is(const Transport& transport) {
  TransportOptions options = default_options();
  options.interfaces = "=none-such";
  const auto made = transport.make(options);
  REQUIRE(!made && made.error().code == Code::missing);
  REQUIRE_THAT(made.error().text.find("'=none-such'") != std::string::npos &&
                   made.error().text.find("lo") != std::string::npos,
               "{}", made.error().text);
}

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  REQUIRE(getsockopt(fd, level, name, &value, &size) == 0);
  return value;
}

void a_traffic_class_marks_what_leaves(const Transport&) {
  for (const TcpDevice& device : must(tcp_devices("=lo"))) {
    wire::TcpAddress at = device.address;
    const Fd listener = must(listen_tcp(at));
    const auto tos = [&](const Service& service) {
      const Fd fd = must(dial_tcp(device.address, at, service, default_options()));
      return at.family == 4 ? option_of(fd.get(), IPPROTO_IP, IP_TOS)
                            : option_of(fd.get(), IPPROTO_IPV6, IPV6_TCLASS);
    };
    REQUIRE(tos({}) == 0 && tos({uint8_t{0x68}}) == 0x68 && tos({uint8_t{0xFC}}) == 0xFC);
  }
}

// Over IPv6 too, where the host has it.
void every_device_carries(const Transport& transport) {
  const size_t devices = Party(transport).worker->devices().size();
  for (size_t device = 0; device < devices; device++) {
    Party a(transport), b(transport);
    REQUIRE(a.worker->devices()[device].address == b.worker->devices()[device].address);
    const Blob address = must(b.worker->listen(device));
    const EndpointId to_b = must(a.worker->connect(device, address, {}, {}));
    until({&a, &b}, [&] { return a.count(Kind::connected) && b.count(Kind::accepted); });
    REQUIRE(a.put(to_b, {a.region, 0, 64}, b.key(), 0, 5) == Posted::ok);
    until({&a, &b}, [&] { return b.count(Kind::notified) == 1; });
  }
}

// A peer learns of the new memory even while it puts and this side's Worker sleeps.
void any_thread_may_register_memory(const Transport& transport) {
  constexpr int kRegions = 200;
  Pair pair(transport);
  std::vector<Buffer> memory;
  for (int i = 0; i < kRegions; i++) memory.push_back(must(Buffer::allocate(4096, "test")));
  std::vector<Blob> keys(kRegions);
  std::atomic<int> ready = 0;
  std::thread other([&] {
    for (int i = 0; i < kRegions; i++) {
      keys[i] = pair.b.worker->key(
          must(pair.b.worker->register_memory(memory[i].view(), Access::remote)));
      ready++;
    }
  });
  for (int i = 0; i < kRegions; i++) {
    while (ready <= i) std::this_thread::yield();
    until({&pair.a, &pair.b}, [&] {
      return pair.a.worker->put(pair.to_b, pair.from_a(0, 8), keys[i], 0, static_cast<uint32_t>(i),
                                0) == Posted::ok;
    });
  }
  until({&pair.a, &pair.b}, [&] { return pair.b.count(Kind::notified) == kRegions; });
  other.join();
}

}  // namespace

std::vector<Case> device_cases() {
  return {
      {"loopback is the last resort", loopback_is_the_last_resort, "tcp"},
      {"a filter that leaves nothing names what there is",
       a_filter_that_leaves_nothing_names_what_there_is, "tcp"},
      {"a traffic class marks what leaves", a_traffic_class_marks_what_leaves, "tcp"},
      {"every device carries", every_device_carries},
      {"any thread may register memory", any_thread_may_register_memory},
  };
}

}  // namespace crosstie::test
