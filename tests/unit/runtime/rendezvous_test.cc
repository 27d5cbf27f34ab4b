// SPDX-License-Identifier: Apache-2.0
// How ranks meet, by threads and by sockets that speak the protocol; what it costs rank 0 is
// counted in bytes.
#include "runtime/rendezvous.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <new>
#include <random>

#include "base/identity.h"
#include "runtime/team.h"

using namespace crosstie;
using namespace std::chrono_literals;

namespace {

std::atomic<size_t> live_bytes, peak_bytes;

void note_allocated(void* at) {
  const size_t now = live_bytes += malloc_usable_size(at);
  for (size_t peak = peak_bytes; now > peak && !peak_bytes.compare_exchange_weak(peak, now);) {
  }
}

}  // namespace

// All that this program allocates is counted. Not inlined: where gcc sees only one of the pair as malloc or
// free, it warns of a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* at = std::malloc(bytes);
  if (!at) throw std::bad_alloc();
  note_allocated(at);
  return at;
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  void* at = std::malloc(bytes);
  if (at) note_allocated(at);
  return at;
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  if (at) live_bytes -= malloc_usable_size(at);
  std::free(at);
}
void operator delete(void* at, size_t) noexcept { operator delete(at); }

namespace {

constexpr size_t kWelcomeBytes = 5, kHeaderBytes = 5;

uint16_t free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Job job_of(int rank, int ranks, uint16_t port) { return {rank, ranks, "127.0.0.1", port, 42}; }

// As a real rank's, eight to a host.
std::string facts_of(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank));
  RankFacts facts;
  facts.host = fmt::format("8f5e0f1c-6c4e-4a6a-9d6b-{:012} net:[4026531840]", rank / 8);
  facts.hostname = fmt::format("gpu-node-{:04}", rank / 8);
  facts.pid = 4000 + rank;
  facts.version = "0.1.0";
  facts.settings = "CROSSTIE_SCRATCH=16M CROSSTIE_CHUNK=256K CROSSTIE_HEALTH_TIMEOUT=30s";
  for (Blob* blob : {&facts.inside, &facts.across})
    for (int i = 0; i < 32; i++) blob->push_back(static_cast<std::byte>(random()));
  return pack(facts);
}

Result<Met> meet_as(const Job& job, Clock::duration timeout = 20s) {
  return meet(
      job, [&job](const std::string&) { return Result<std::string>(facts_of(job.rank)); }, timeout,
      Log());
}
std::future<Result<Met>> meet_in_background(const Job& job) {
  return std::async(std::launch::async, [job] { return meet_as(job); });
}

Fd dial(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const Deadline deadline(10s); !deadline.expired(); std::this_thread::sleep_for(1ms)) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  }
  cr_assert(false, "rank 0 does not listen");
  return Fd();
}

// A member that speaks the protocol by hand and keeps nothing.
struct FakeMember {
  Fd socket;
  size_t got = 0;
  unsigned char head[kWelcomeBytes + kHeaderBytes] = {};

  FakeMember(int rank, int ranks, uint16_t port) : socket(dial(port)) {
    const std::string words =
        *pack('H', fmt::format("crosstie-rendezvous-1 42 {} {}", rank, ranks)) +
        *pack('F', facts_of(rank));
    cr_assert(send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(words.size()));
  }
  void read() {
    static char bytes[65536];
    const ssize_t n = recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    cr_assert(n > 0, "rank 0 hung up");
    for (size_t i = 0; i < static_cast<size_t>(n) && got + i < sizeof head; i++)
      head[got + i] = static_cast<unsigned char>(bytes[i]);
    got += static_cast<size_t>(n);
  }
  bool has_table() const {
    if (got < sizeof head) return false;
    uint32_t length = 0;
    memcpy(&length, head + kWelcomeBytes, sizeof length);
    return got == sizeof head + ntohl(length);
  }
};

struct Cost {
  size_t peak = 0;   // bytes that the whole process allocated at once
  size_t table = 0;  // bytes that each member received
};

Cost cost_of_meeting(int ranks) {
  const uint16_t port = free_port();
  live_bytes = peak_bytes = 0;
  auto host = meet_in_background(job_of(0, ranks, port));
  std::vector<FakeMember> members;
  for (int rank = 1; rank < ranks; rank++) members.emplace_back(rank, ranks, port);
  std::vector<pollfd> fds;
  for (const FakeMember& member : members) fds.push_back({member.socket.get(), POLLIN, 0});
  for (size_t reading = members.size(); reading > 0;) {
    cr_assert(poll(fds.data(), fds.size(), 20000) > 0, "rank 0 says nothing");
    for (size_t i = 0; i < members.size(); i++) {
      if (fds[i].revents == 0) continue;
      members[i].read();
      if (!members[i].has_table()) continue;
      fds[i].fd = -1;
      reading--;
    }
  }
  const auto met = host.get();
  cr_assert(met.has_value(), "%s", met ? "" : met.error().text.c_str());
  cr_assert(met->facts.back() == facts_of(ranks - 1));
  for (const FakeMember& member : members) cr_assert(member.got == members[0].got);
  return {peak_bytes, members[0].got};
}

bool can_open(rlim_t files) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max >= files;
}

}  // namespace

Test(rendezvous, what_it_costs_rank_0_grows_with_the_ranks_and_not_with_their_square) {
  if (!can_open(2500)) cr_skip_test("needs 2500 open files");
  const Cost few = cost_of_meeting(250), many = cost_of_meeting(1000);
  cr_log_info("250 ranks: %zu bytes, 1000 ranks: %zu bytes; tables %zu, %zu", few.peak, many.peak,
              few.table, many.table);
  cr_assert(many.peak < 5 * few.peak, "%zu bytes, then %zu", few.peak, many.peak);
  cr_assert(many.table < 5 * few.table);
  // Two addresses of 32 bytes are all that a rank has for itself.
  cr_assert(many.table / 1000 < 120, "%zu bytes a rank", many.table / 1000);
}

Test(rendezvous, real_members_read_the_table_that_rank_0_wrote) {
  const uint16_t port = free_port();
  constexpr int kRanks = 12;
  std::vector<std::future<Result<Met>>> meetings;
  for (int rank = 0; rank < kRanks; rank++)
    meetings.push_back(meet_in_background(job_of(rank, kRanks, port)));
  for (auto& meeting : meetings) {
    const auto met = meeting.get();
    cr_assert(met.has_value(), "%s", met ? "" : met.error().text.c_str());
    for (int rank = 0; rank < kRanks; rank++)
      cr_assert(met->facts[static_cast<size_t>(rank)] == facts_of(rank));
  }
}

Test(rendezvous, facts_may_be_short_alike_or_empty) {
  const uint16_t port = free_port();
  constexpr int kRanks = 9;
  const auto facts = [](int rank) { return std::string(static_cast<size_t>(rank % 4), 'x'); };
  std::vector<std::future<Result<Met>>> meetings;
  for (int rank = 0; rank < kRanks; rank++)
    meetings.push_back(std::async(std::launch::async, [=] {
      return meet(
          job_of(rank, kRanks, port),
          [=](const std::string&) { return Result<std::string>(facts(rank)); }, 20s, Log());
    }));
  for (auto& meeting : meetings) {
    const auto met = meeting.get();
    cr_assert(met.has_value());
    for (int rank = 0; rank < kRanks; rank++)
      cr_assert(met->facts[static_cast<size_t>(rank)] == facts(rank));
  }
}

Test(rendezvous, rank_0_raises_its_soft_limit_of_open_files_where_the_ranks_do_not_fit) {
  if (!can_open(500)) cr_skip_test("needs 500 open files");
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &limit);
  cost_of_meeting(100);
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  cr_assert(after.rlim_cur == limit.rlim_max);
}

Test(rendezvous, strays_on_the_port_do_no_harm) {
  const uint16_t port = free_port();
  auto host = meet_in_background(job_of(0, 2, port));
  std::vector<Fd> strays;
  const auto say = [&](std::string_view words) {
    strays.push_back(dial(port));
    send(strays.back().get(), words.data(), words.size(), MSG_NOSIGNAL);
  };
  say("");
  say("GET / HTTP/1.1\r\n\r\n");  // as a frame, more than a gigabyte long
  say(*pack('H', "nonsense"));
  say(*pack('F', "facts before a hello"));
  say(*pack('H', "crosstie-rendezvous-1 41 1 2"));  // another job's
  say(*pack('H', "crosstie-rendezvous-1 42 7 2"));
  auto member = meet_in_background(job_of(1, 2, port));
  cr_assert(host.get().has_value());
  cr_assert(member.get().has_value());
}

Test(rendezvous, of_two_processes_with_one_rank_the_second_learns_who_the_first_is) {
  const uint16_t port = free_port();
  auto host = meet_in_background(job_of(0, 3, port));
  std::future<Result<Met>> twins[] = {meet_in_background(job_of(1, 3, port)),
                                      meet_in_background(job_of(1, 3, port))};
  const auto is_ready = [](auto& twin) { return twin.wait_for(1ms) == std::future_status::ready; };
  for (const Deadline deadline(10s); !is_ready(twins[0]) && !is_ready(twins[1]);)
    cr_assert_not(deadline.expired());
  const bool first_failed = is_ready(twins[0]);
  const auto refused = twins[first_failed ? 0 : 1].get();
  cr_assert_not(refused.has_value());
  cr_assert(refused.error().code == Code::invalid);
  const std::string holder =
      fmt::format("rank 1 is process {} on host {} already", getpid(), host_name());
  cr_assert(refused.error().text.find(holder) != std::string::npos, "%s",
            refused.error().text.c_str());
  auto last = meet_in_background(job_of(2, 3, port));
  cr_assert(host.get().has_value());
  cr_assert(twins[first_failed ? 1 : 0].get().has_value());
  cr_assert(last.get().has_value());
}

Test(rendezvous, a_second_rank_0_learns_who_the_first_is) {
  const uint16_t port = free_port();
  auto host = meet_in_background(job_of(0, 2, port));
  dial(port);
  const auto second = meet_as(job_of(0, 2, port), 2s);
  cr_assert_not(second.has_value());
  cr_assert(second.error().code == Code::invalid);
  const std::string holder =
      fmt::format("rank 0 is process {} on host {} already", getpid(), host_name());
  cr_assert(second.error().text.find(holder) != std::string::npos, "%s",
            second.error().text.c_str());
  auto member = meet_in_background(job_of(1, 2, port));
  cr_assert(host.get().has_value());
  cr_assert(member.get().has_value());
}

Test(channel, a_frame_that_is_too_large_is_refused_before_it_is_read) {
  int ends[2];
  cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd far(ends[0]);
  Channel near(Fd(ends[1]), 100);
  const Packed large = pack('x', std::string(100000, 'x'));
  cr_assert(send(far.get(), large->data(), large->size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(large->size()));
  cr_assert_not(near.receive().has_value());
  int unread = 0;
  ioctl(near.fd(), FIONREAD, &unread);
  cr_assert(unread > 80000, "%d bytes are left", unread);
}

Test(channel, frames_that_come_in_pieces_are_whole) {
  int ends[2];
  cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Channel near(Fd(ends[0]), 1 << 20), far(Fd(ends[1]), 1 << 20);
  std::mt19937 random(7);
  std::vector<std::string> sent, got;
  for (int i = 0; i < 300; i++) {
    sent.push_back(std::string(random() % (i % 10 ? 40 : 100000), static_cast<char>('a' + i % 26)));
    cr_assert(near.send('x', sent.back()).has_value());
  }
  while (got.size() < sent.size()) {
    cr_assert(near.flush().has_value());
    const auto frame = far.receive();
    cr_assert(frame.has_value());
    if (*frame) got.push_back((*frame)->payload);
  }
  cr_assert(got == sent);
}

Test(team, facts_that_are_cut_short_are_refused) {
  const std::string whole = facts_of(3);
  const auto facts = unpack_facts(whole);
  cr_assert(facts && facts->pid == 4003 && facts->hostname == "gpu-node-0000");
  cr_assert(pack(*facts) == whole);
  for (size_t n = 0; n < whole.size(); n++)
    cr_assert_not(unpack_facts(std::string_view(whole).substr(0, n)).has_value());
}
