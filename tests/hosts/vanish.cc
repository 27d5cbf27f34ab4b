// SPDX-License-Identifier: Apache-2.0
// The tcp transport when a peer's host vanishes: what is posted fails within its deadline, an idle
// connection has none. Runs where hosts.sh has made two hosts.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "party.h"
#include "tap.h"
#include "transport/tcp.h"

namespace crosstie::test {
namespace {

constexpr auto kTimeout = std::chrono::milliseconds(1500);
// Timers of the kernel that double, and a busy machine.
constexpr auto kSlack = std::chrono::milliseconds(2500);

void enter(int host) {
  const Fd space(::open(fmt::format("/run/netns/host{}", host).c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(space && setns(space.get(), CLONE_NEWNET) == 0);
}
// Its link, at the switch.
void set_link(int host, const char* state) {
  const auto command =
      fmt::format("nsenter --net=/run/netns/switch ip link set port{} {}", host, state);
  REQUIRE(std::system(command.c_str()) == 0);
}
void cut(int host) { set_link(host, "nomaster"); }
void mend(int host) { set_link(host, "master switch"); }

TransportOptions impatient() {
  TransportOptions options = default_options();
  options.tcp_timeout = options.handshake_timeout = kTimeout;
  return options;
}

Transport over_eth0() {
  return {"tcp", [](TransportOptions options) {
            options.interfaces = "=eth0";
            return make_tcp_worker(options, Log());
          }};
}

// On host 1, patient: answers every message until the connection ends.
void echo(int socket) {
  enter(1);
  Visitor visitor(over_eth0(), socket);
  for (;;) {
    visitor.await(Kind::message);
    visitor.message(visitor.peer, "yes");
    visitor.poll();
  }
}

// This process on host 0, with an impatient connection to a process on host 1 that is at work.
struct Scene {
  Scene() : child(echo) {
    enter(0);
    here.emplace(over_eth0(), kBytes, impatient());
    peer = receive_visitor(*here, child);
    exchange();
  }
  void exchange() {
    REQUIRE(here->message(peer, "there?") == Posted::ok);
    here->await(Kind::message);
  }
  // The failure and the peer's name come after the deadline, and soon after.
  void must_fail(Clock::time_point since) {
    const Event event = here->await(Kind::failed);
    const auto took = Clock::now() - since;
    REQUIRE_THAT(event.endpoint == peer && event.why.starts_with("10.77.0.2:"), "{}", event.why);
    REQUIRE_THAT(took >= kTimeout / 2 && took <= kTimeout + kSlack, "it took {:.2f} s",
                 std::chrono::duration<double>(took).count());
  }
  static constexpr size_t kBytes = 4096;
  Child child;
  std::optional<Party> here;
  EndpointId peer{};
};

void a_posted_message_fails(const Transport&) {
  Scene scene;
  cut(1);
  const auto since = Clock::now();
  REQUIRE(scene.here->message(scene.peer, "there?") == Posted::ok);
  scene.must_fail(since);
}

// More than the socket takes: some is not even sent.
void a_full_queue_fails(const Transport&) {
  Scene scene;
  Party& here = *scene.here;
  const std::string text(kMaxMessage, 'x');
  cut(1);
  const auto since = Clock::now();
  while (here.worker->message(scene.peer, as_bytes(text)) == Posted::ok) here.poll();
  scene.must_fail(since);
}

void an_idle_connection_outlives_the_deadline(const Transport&) {
  Scene scene;
  cut(1);
  const Deadline later(2 * kTimeout);
  while (!later.expired()) {
    scene.here->poll();
    usleep(10'000);
  }
  REQUIRE(scene.here->count(Kind::failed) == 0);
  mend(1);
  // The switch may have to learn anew where the host is.
  scene.exchange();
}

void a_connection_to_a_vanished_host_fails(const Transport&) {
  Scene scene;
  Party& here = *scene.here;
  const Blob address = [] {
    enter(1);
    return must(Party(over_eth0()).worker->listen(0));
  }();
  enter(0);
  cut(1);
  const auto since = Clock::now();
  const EndpointId endpoint = must(here.worker->connect(0, address, {}, {}));
  const Event event = here.await(Kind::failed);
  REQUIRE(event.endpoint == endpoint && event.why.starts_with("10.77.0.2:"));
  REQUIRE(Clock::now() - since <= kTimeout + kSlack);
}

int main() {
  Tap tap;
  const Case cases[] = {{"a message to a host that vanished fails by its deadline and names it",
                         a_posted_message_fails},
                        {"a full queue to a host that vanished fails by its deadline and names it",
                         a_full_queue_fails},
                        {"a connection on which nothing is posted outlives a cut",
                         an_idle_connection_outlives_the_deadline},
                        {"a connection to a host that vanished fails by its deadline and names it",
                         a_connection_to_a_vanished_host_fails}};
  for (const Case& one : cases) {
    const std::string wrong = run_alone(one, over_eth0());
    tap.check(wrong.empty(), one.name, wrong);
    mend(1);
  }
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(); }
