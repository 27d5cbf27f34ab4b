// SPDX-License-Identifier: Apache-2.0
// What survivors see when a rank dies, stands still, comes late, leaves or never comes.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "crosstie/crosstie.h"
#include "knobs.h"
#include "ranks.h"
#include "tap.h"

namespace crosstie::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kVictim = 2;
constexpr int kPeerError = 10;  // exit code of a rank that got CROSSTIE_ERR_PEER

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count++;
  return count;
}

// Reduces for ever, until an error comes; says it, and that nothing of ours stays open.
int reduce_until_error(int) {
  const size_t before = open_descriptors();
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  std::vector<float> data(1 << 20, 1);
  crosstie_status_t status = CROSSTIE_OK;
  std::puts("started");
  std::fflush(stdout);
  while (status == CROSSTIE_OK)
    status = crosstie_allreduce(comm, data.data(), data.data(), data.size(), CROSSTIE_F32,
                                CROSSTIE_SUM, nullptr, nullptr);
  std::printf("error: %s\n", crosstie_last_error());
  const auto again = crosstie_allreduce(comm, data.data(), data.data(), 1, CROSSTIE_F32,
                                        CROSSTIE_SUM, nullptr, nullptr);
  crosstie_comm_destroy(comm);
  if (open_descriptors() != before) std::puts("descriptors leaked");
  if (again != status) std::puts("the next collective did not fail alike");
  return status == CROSSTIE_ERR_PEER ? kPeerError : 1;
}

// The victim's child, which outlives it, holds all its sockets.
int reduce_beside_a_child(int rank) {
  crosstie_comm_t* comm = nullptr;
  if (rank != kVictim) return reduce_until_error(rank);
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  std::vector<float> data(1 << 20, 1);
  for (int i = 0;; i++) {
    if (i == 1 && fork() == 0) {
      std::this_thread::sleep_for(4s);
      _exit(0);
    }
    if (i == 1) {
      std::puts("started");
      std::fflush(stdout);
    }
    if (crosstie_allreduce(comm, data.data(), data.data(), data.size(), CROSSTIE_F32, CROSSTIE_SUM,
                           nullptr, nullptr) != CROSSTIE_OK)
      return 1;
  }
}

void wait_until_all_say(Ranks& ranks, const char* word) {
  const auto all = [&] {
    const auto ends = ranks.wait(10ms);
    return std::all_of(ends.begin(), ends.end(),
                       [&](const End& end) { return end.said.find(word) != std::string::npos; });
  };
  for (const auto until = Clock::now() + 30s; !all() && Clock::now() < until;) {
  }
  std::this_thread::sleep_for(200ms);  // into the middle of a collective
}

// Empty if every survivor ended with an error that names the victim and its host.
std::string complaints(const std::vector<End>& ends, int victim, const std::string& host) {
  std::string why;
  const std::string name = fmt::format("rank {} on host {}", victim, host);
  for (size_t r = 0; r < ends.size(); r++) {
    if (static_cast<int>(r) == victim) continue;
    const End& end = ends[r];
    if (!end.ended || end.code != kPeerError || end.said.find(name) == std::string::npos ||
        end.said.find("leaked") != std::string::npos || end.said.find("alike") != std::string::npos)
      why += fmt::format("rank {} ({}): {}; ", r,
                         end.ended ? fmt::format("code {}", end.code) : "still running", end.said);
  }
  return why;
}

std::string host_of(const std::vector<int>& hosts, int rank) {
  size_t host = 0;
  for (; rank >= hosts[host]; host++) rank -= hosts[host];
  return fmt::format("host{}", host);
}

void killed(Tap& tap, const char* name, const std::vector<int>& hosts, int victim,
            const char* host) {
  Ranks ranks(hosts, reduce_until_error);
  wait_until_all_say(ranks, "started");
  kill(ranks.pid(victim), SIGKILL);
  const auto start = Clock::now();
  const std::string why = complaints(ranks.wait(5s), victim, host);
  const std::chrono::duration<double> took = Clock::now() - start;
  tap.check(why.empty(), name, why);
  fmt::print("# survivors took {:.2f} s\n", took.count());
}

// Anyone, at any moment, anywhere.
void killed_at_random(Tap& tap) {
  Random random = seeded_random();
  const std::vector<std::vector<int>> shapes = {{2}, {1, 1}, {3}, {2, 2}, {1, 3}, {2, 1, 2}};
  for (int i = 0; i < rounds(3); i++) {
    const std::vector<int>& hosts = shapes[random() % shapes.size()];
    Ranks ranks(hosts, reduce_until_error);
    const int victim = static_cast<int>(random() % static_cast<uint64_t>(ranks.count()));
    const auto moment = std::chrono::microseconds(random() % 50000);
    wait_until_all_say(ranks, "started");
    std::this_thread::sleep_for(moment);
    kill(ranks.pid(victim), SIGKILL);
    const std::string why = complaints(ranks.wait(5s), victim, host_of(hosts, victim));
    tap.check(why.empty(),
              fmt::format("survivors name whoever is killed, whenever: round {}", i + 1),
              fmt::format("hosts of {} ranks, victim {}, after {} us: {}", fmt::join(hosts, ", "),
                          victim, moment.count(), why));
  }
}

void killed_beside_a_child(Tap& tap, const char* name, const std::vector<int>& hosts) {
  Ranks ranks(hosts, reduce_beside_a_child);
  wait_until_all_say(ranks, "started");
  kill(ranks.pid(kVictim), SIGKILL);
  const auto start = Clock::now();
  const std::string why = complaints(ranks.wait(1s), kVictim, "host1");
  const std::chrono::duration<double> took = Clock::now() - start;
  tap.check(why.empty(), name, why);
  fmt::print("# survivors took {:.2f} s\n", took.count());
}

void stopped(Tap& tap, const char* name, int victim, const char* host) {
  Ranks ranks({2, 2}, reduce_until_error, {{"CROSSTIE_HEALTH_TIMEOUT", "3s"}});
  wait_until_all_say(ranks, "started");
  kill(ranks.pid(victim), SIGSTOP);
  const auto start = Clock::now();
  const std::string why = complaints(ranks.wait(8s, victim), victim, host);
  const std::chrono::duration<double> took = Clock::now() - start;
  tap.check(why.empty(), name, why);
  tap.check(took > 2.4s, fmt::format("{}, and not before the bound", name));
  fmt::print("# survivors took {:.2f} s\n", took.count());
}

// The victim computes for ten seconds before its collective.
int compute_first(int rank) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  float x = 1;
  if (rank == kVictim)
    for (const auto until = Clock::now() + 10s; Clock::now() < until;) x = x * 1.0f;
  const auto status =
      crosstie_allreduce(comm, &x, &x, 1, CROSSTIE_F32, CROSSTIE_SUM, nullptr, nullptr);
  if (status != CROSSTIE_OK) std::printf("error: %s\n", crosstie_last_error());
  crosstie_comm_destroy(comm);
  return status != CROSSTIE_OK || x != 4;
}

void computing(Tap& tap) {
  Ranks ranks({2, 2}, compute_first, {{"CROSSTIE_HEALTH_TIMEOUT", "3s"}});
  const auto ends = ranks.wait(30s);
  bool clean = true, named = true;
  std::string all;
  for (size_t r = 0; r < ends.size(); r++) {
    all += ends[r].said;
    clean = clean && ends[r].code == 0;
    if (static_cast<int>(r) != kVictim)
      named = named && ends[r].said.find("warning: rank 2 on host host1") != std::string::npos;
  }
  tap.check(clean, "a rank that computes for ten seconds is no error", all);
  tap.check(named, "a rank that computes for ten seconds is named in a warning", all);
}

int time_out(int rank) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  float x = 1;
  crosstie_call_t call = CROSSTIE_CALL_INIT;
  call.timeout = 1;
  if (rank == kVictim) {
    std::this_thread::sleep_for(3s);
    return 0;
  }
  const auto status =
      crosstie_allreduce(comm, &x, &x, 1, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr);
  std::printf("error: %s\n", crosstie_last_error());
  crosstie_comm_destroy(comm);
  // The first to give up tells the others, who may hear of it before their own time is up.
  return status == CROSSTIE_ERR_TIMEOUT || status == CROSSTIE_ERR_PEER ? kPeerError : 1;
}

void late(Tap& tap) {
  Ranks ranks({2, 2}, time_out);
  const std::string why = complaints(ranks.wait(10s), kVictim, "host1");
  tap.check(why.empty(),
            "a collective that exceeds its timeout names the rank that has not begun it", why);
}

int leave_early(int rank) {
  if (rank != kVictim) return reduce_until_error(rank);
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  std::puts("started");
  crosstie_comm_destroy(comm);
  return 0;
}

void left(Tap& tap) {
  Ranks ranks({2, 2}, leave_early);
  const std::string why = complaints(ranks.wait(10s), kVictim, "host1");
  tap.check(why.empty(), "a rank that leaves the job is named by those who still need it", why);
}

// Every second rank asks for another collective.
template <class Differ>
int differ(int rank, Differ&& ask) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  std::vector<uint64_t> data(2000, 1);
  const auto status = ask(comm, data.data(), rank % 2 == 1);
  std::printf("error: %s\n", crosstie_last_error());
  crosstie_comm_destroy(comm);
  return status == CROSSTIE_ERR_PEER ? kPeerError : 1;
}
int differ_in_count(int rank) {
  return differ(rank, [](crosstie_comm_t* comm, uint64_t* data, bool other) {
    return crosstie_allreduce(comm, data, data, other ? 1001 : 1000, CROSSTIE_F32, CROSSTIE_SUM,
                              nullptr, nullptr);
  });
}
int differ_in_type(int rank) {
  return differ(rank, [](crosstie_comm_t* comm, uint64_t* data, bool other) {
    return crosstie_allreduce(comm, data, data, 1000, other ? CROSSTIE_U64 : CROSSTIE_F32,
                              CROSSTIE_SUM, nullptr, nullptr);
  });
}
int differ_in_algorithm(int rank) {
  return differ(rank, [](crosstie_comm_t* comm, uint64_t* data, bool other) {
    crosstie_call_t call = CROSSTIE_CALL_INIT;
    call.algorithm = other ? "ring" : "hierarchical";
    return crosstie_allreduce(comm, data, data, 1000, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr);
  });
}

int differ_in_class(int rank) {
  return differ(rank, [](crosstie_comm_t* comm, uint64_t* data, bool other) {
    crosstie_call_t call = CROSSTIE_CALL_INIT;
    call.traffic_class = other ? CROSSTIE_CLASS_TP : CROSSTIE_CLASS_DP;
    call.check = 1;
    return crosstie_allreduce(comm, data, data, 1000, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr);
  });
}
// Only rank 3, and late: others have begun by then.
int differ_alone(int rank) {
  return differ(rank, [rank](crosstie_comm_t* comm, uint64_t* data, bool) {
    if (rank == 3) std::this_thread::sleep_for(300ms);
    return crosstie_allreduce(comm, data, data, rank == 3 ? 1001 : 1000, CROSSTIE_F32, CROSSTIE_SUM,
                              nullptr, nullptr);
  });
}
// One that ends at once on its error, without a goodbye, has still told the others.
int differ_and_exit(int rank) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return 1;
  std::vector<float> data(2000, 1);
  const auto status = crosstie_allreduce(comm, data.data(), data.data(), rank == 1 ? 1001 : 1000,
                                         CROSSTIE_F32, CROSSTIE_SUM, nullptr, nullptr);
  std::printf("error: %s\n", crosstie_last_error());
  std::fflush(stdout);
  _exit(status == CROSSTIE_ERR_PEER ? kPeerError : 1);
}
int differ_in_check(int rank) {
  return differ(rank, [](crosstie_comm_t* comm, uint64_t* data, bool other) {
    crosstie_call_t call = CROSSTIE_CALL_INIT;
    call.check = other;
    return crosstie_allreduce(comm, data, data, 1000, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr);
  });
}

void different(Tap& tap, const char* name, int (*body)(int),
               const char* said = "count, type, algorithm or check differ",
               const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  Ranks ranks({2, 2}, body, variables);
  std::string why;
  for (const End& end : ranks.wait(10s))
    if (end.code != kPeerError || end.said.find(said) == std::string::npos)
      why += fmt::format("code {}: {}; ", end.code, end.said);
  tap.check(why.empty(), name, why);
}

int never_come(int rank) {
  if (rank == kVictim) return 0;
  crosstie_comm_t* comm = nullptr;
  const auto status = crosstie_comm_create(&comm, nullptr);
  std::printf("error: %s\n", crosstie_last_error());
  return status == CROSSTIE_ERR_TIMEOUT ? kPeerError : 1;
}

void absent(Tap& tap) {
  Ranks ranks({2, 2}, never_come, {{"CROSSTIE_JOIN_TIMEOUT", "1s"}});
  const auto ends = ranks.wait(15s);
  std::string why;
  for (size_t r = 0; r < ends.size(); r++)
    if (static_cast<int>(r) != kVictim &&
        (ends[r].code != kPeerError ||
         ends[r].said.find("ranks 2 of 4 have not come") == std::string::npos))
      why += fmt::format("rank {} code {}: {}", r, ends[r].code, ends[r].said);
  tap.check(why.empty(), "a rank that never comes is named to all that have", why);
}

// An empty /dev/shm of our own, in which nobody else's files come and go.
bool own_shared_memory() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0;
}

void nothing_left(Tap& tap, bool own) {
  const char* name = "nothing is left in /dev/shm";
  if (!own) return tap.skip(name, "a /dev/shm of one's own needs root");
  tap.check(std::filesystem::is_empty("/dev/shm"), name);
}

int main() {
  Tap tap;
  const bool own = own_shared_memory();
  killed(tap, "survivors of a killed rank name it and its host within five seconds", {2, 2},
         kVictim, "host1");
  killed(tap, "survivors of a killed rank 0 name it", {2, 2}, 0, "host0");
  killed(tap, "survivors of a killed rank on their own host name it", {4}, kVictim, "host0");
  killed(tap, "survivors on eight ranks agree on the one that was killed", {4, 4}, 5, "host1");
  killed_at_random(tap);
  killed_beside_a_child(tap, "a killed rank whose child holds its sockets is named within a second",
                        {2, 2});
  stopped(tap, "a rank that stands still is declared dead after the health bound", kVictim,
          "host1");
  stopped(tap, "a rank 0 that stands still is declared dead by the others", 0, "host0");
  computing(tap);
  late(tap);
  left(tap);
  absent(tap);
  different(tap, "ranks with different counts are told so", differ_in_count);
  different(tap, "ranks with different types are told so", differ_in_type);
  different(tap, "ranks with different algorithms are told so", differ_in_algorithm);
  different(tap, "ranks that compare their calls are told what each one calls", differ_in_count,
            "all_reduce of 1001 f32", {{"CROSSTIE_CHECK", "1"}});
  different(tap, "ranks that compare their calls find the one that differs, though it come late",
            differ_alone, "all_reduce of 1001 f32", {{"CROSSTIE_CHECK", "1"}});
  different(tap, "ranks that end at once on their error have told the others", differ_and_exit);
  different(tap, "ranks that compare their calls find a different class", differ_in_class,
            "for class tp");
  different(tap, "ranks of which only some compare their calls are told so", differ_in_check,
            "check");
  nothing_left(tap, own);
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(); }
