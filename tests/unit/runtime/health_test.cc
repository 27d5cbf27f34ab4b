// SPDX-License-Identifier: Apache-2.0
// Rank 0 among members that a test speaks for.
#include "runtime/health.h"

#include <criterion/criterion.h>
#include <sys/socket.h>

#include <thread>

using namespace crosstie;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 5;

// Rank 0 and the far ends of its spokes.
struct Hub {
  std::unique_ptr<Health> health;
  std::vector<Channel> members = std::vector<Channel>(kRanks);

  explicit Hub(Clock::duration bound = 30s) {
    Star star;
    star.spokes.resize(kRanks);
    for (size_t rank = 1; rank < kRanks; rank++) {
      int ends[2];
      cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      star.spokes[rank] = Channel(Fd(ends[0]), 1 << 20);
      members[rank] = Channel(Fd(ends[1]), 1 << 20);
    }
    auto made = Health::make(0, kRanks, std::move(star), bound);
    cr_assert(made.has_value());
    health = std::move(*made);
    health->beat();
    for (size_t rank = 1; rank < kRanks; rank++) cr_assert(heard(rank, 'b').size() == 1);
  }
  // The payloads of one type that a member has been sent.
  std::vector<std::string> heard(size_t rank, uint8_t type) {
    std::vector<std::string> payloads;
    for (;;) {
      const auto frame = members[rank].receive();
      if (!frame || !*frame) return payloads;
      if ((*frame)->type == type) payloads.push_back((*frame)->payload);
    }
  }
};

}  // namespace

Test(health, those_who_leave_together_are_told_of_in_one_frame) {
  Hub hub;
  for (const size_t rank : {1, 2, 4})
    cr_assert(hub.members[rank].send('l', fmt::format("{} {}", rank, 10 + rank)).has_value());
  hub.health->beat();
  const auto told = hub.heard(3, 'l');
  cr_assert(told.size() == 1, "%zu frames", told.size());
  cr_assert(told[0].find("1 11") != std::string::npos && told[0].find("4 14") != std::string::npos);
  cr_assert(hub.health->left_after(2) == 12 && !hub.health->left_after(3));
  // A member understands it.
  Star star;
  int ends[2];
  cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  star.hub = Channel(Fd(ends[0]), 1 << 20);
  Channel far(Fd(ends[1]), 1 << 20);
  auto member = Health::make(3, kRanks, std::move(star), 30s);
  cr_assert(member.has_value());
  cr_assert(far.send('l', told[0]).has_value());
  (*member)->beat();
  cr_assert((*member)->left_after(1) == 11 && (*member)->left_after(4) == 14);
}

Test(health, a_verdict_comes_before_the_leaving_of_who_told_it) {
  Hub hub;
  cr_assert(hub.members[1].send('v', "2 fell over").has_value());
  cr_assert(hub.members[1].send('l', "1 7").has_value());
  hub.health->beat();
  std::string order;
  for (auto frame = hub.members[3].receive(); frame && *frame; frame = hub.members[3].receive())
    order += static_cast<char>((*frame)->type);
  cr_assert(order == "vl", "%s", order.c_str());
}

Test(health, a_connection_that_closes_without_a_goodbye_is_a_death) {
  Hub hub;
  hub.members[4].close();
  hub.health->beat();
  cr_assert(hub.health->verdict()->rank == 4);
  cr_assert(hub.heard(1, 'v').size() == 1);
}

Test(health, one_that_says_nothing_is_dead_after_the_bound_and_one_that_does_is_not) {
  Hub hub(600ms);
  for (const Deadline deadline(3s); !hub.health->verdict() && !deadline.expired();) {
    for (const size_t rank : {1, 2, 4}) cr_assert(hub.members[rank].send('b', "0").has_value());
    hub.health->beat();
    std::this_thread::sleep_for(20ms);
  }
  cr_assert(hub.health->verdict() && hub.health->verdict()->rank == 3);
}

Test(health, members_learn_soon_when_another_one_is_the_last) {
  Hub hub;
  hub.health->entered(5);
  for (const size_t rank : {1, 2, 4}) cr_assert(hub.members[rank].send('b', "5").has_value());
  const auto begun = Clock::now();
  std::vector<std::string> told;
  while (told.empty() && Clock::now() - begun < 3s) {
    hub.health->beat();
    std::this_thread::sleep_for(10ms);
    told = hub.heard(1, 'b');
  }
  // A regular beat would have come after five seconds.
  cr_assert(told == std::vector<std::string>{"3 0"});
}

Test(health, a_goodbye_that_a_full_socket_holds_up_is_sent_as_soon_as_there_is_room) {
  Hub hub;
  // More verdict than a socket takes.
  hub.health->accuse({2, std::string(900000, 'x')});
  hub.health->beat();
  auto reading = std::thread([&] {
    std::this_thread::sleep_for(100ms);
    cr_assert(hub.members[1].receive(Deadline(2s))->type == 'v');
    cr_assert(hub.members[1].receive(Deadline(2s))->type == 'l');
    for (Channel& member : hub.members) member.close();
  });
  const auto begun = Clock::now();
  hub.health->leave(1, Deadline(2s));
  cr_assert(Clock::now() - begun < 1500ms);
  reading.join();
}
