// SPDX-License-Identifier: Apache-2.0
// AllReduce through the C API, by real processes, on hosts drawn by hand.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "crosstie/crosstie.h"
#include "knobs.h"
#include "ranks.h"
#include "tap.h"

namespace crosstie::test {
namespace {

using namespace std::chrono_literals;

int complain(const char* what) {
  std::printf("%s: %s\n", what, crosstie_last_error());
  return 1;
}

// Whole numbers that no other element nor rank has, within f32's exact range.
float value(int rank, size_t i) {
  return static_cast<float>((static_cast<size_t>(rank) * 31 + i) % 1009);
}
float sum(int ranks, size_t i) {
  float total = 0;
  for (int r = 0; r < ranks; r++) total += value(r, i);
  return total;
}

int reduce_once(crosstie_comm_t* comm, size_t count, const char* algorithm, bool in_place) {
  const int rank = crosstie_comm_rank(comm), ranks = crosstie_comm_ranks(comm);
  std::vector<float> in(count), out(count, -1);
  for (size_t i = 0; i < count; i++) in[i] = value(rank, i);
  if (in_place) out = in;
  crosstie_call_t call = CROSSTIE_CALL_INIT;
  call.algorithm = algorithm;
  call.timeout = 60;
  const float* from = in_place ? out.data() : in.data();
  if (crosstie_allreduce(comm, from, out.data(), count, CROSSTIE_F32, CROSSTIE_SUM, &call,
                         nullptr) != CROSSTIE_OK)
    return complain("allreduce");
  for (size_t i = 0; i < count; i++)
    if (out[i] != sum(ranks, i)) {
      std::printf("%s, %zu elements%s: element %zu is %g, not %g\n", algorithm, count,
                  in_place ? ", in place" : "", i, out[i], sum(ranks, i));
      return 1;
    }
  return 0;
}

// Every count and algorithm, in one job, one after the other: also shows that operations of
// different Programs can follow each other.
int reduce_all(int) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
  int failures = 0;
  std::vector<size_t> counts = {0, 1, 2, 15, 16, 17, 1000, 65537, 1000001};
  if (whole_matrix()) counts.insert(counts.end(), {31, 33, 4095, 4097, 262144});
  for (const size_t count : counts)
    for (const char* algorithm : {"ring", "hierarchical"})
      for (const bool in_place : {false, true})
        failures += reduce_once(comm, count, algorithm, in_place);
  crosstie_comm_destroy(comm);
  return failures > 0;
}

// Returns once this rank has put nothing for a while; looks without moving anything itself.
void wait_until_quiet(crosstie_comm_t* comm) {
  crosstie_traffic_t before{}, now{};
  const auto until = std::chrono::steady_clock::now() + 60s;
  do {
    before = now;
    std::this_thread::sleep_for(1s);
    crosstie_comm_traffic(comm, &now);
  } while (std::memcmp(&before, &now, sizeof now) != 0 && std::chrono::steady_clock::now() < until);
}

// Several requests outstanding while the caller does nothing: the library thread moves them. More
// than one call of crosstie_test could move in its slice of time.
int reduce_unattended(int) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
  constexpr size_t kCount = 1000000, kRequests = 5;
  const int ranks = crosstie_comm_ranks(comm);
  std::vector<std::vector<float>> data(kRequests, std::vector<float>(kCount, 1));
  std::vector<crosstie_request_t*> requests(kRequests);
  for (size_t r = 0; r < kRequests; r++)
    if (crosstie_allreduce(comm, data[r].data(), data[r].data(), kCount, CROSSTIE_F32, CROSSTIE_SUM,
                           nullptr, &requests[r]) != CROSSTIE_OK)
      return complain("allreduce");
  wait_until_quiet(comm);
  int done = 0;
  if (crosstie_test(&requests.back(), &done) != CROSSTIE_OK || !done)
    return complain("the library thread has not moved the last request");
  for (crosstie_request_t*& request : requests)
    if (crosstie_wait(&request) != CROSSTIE_OK || request) return complain("wait");
  for (const auto& result : data)
    for (const float x : result)
      if (x != static_cast<float>(ranks)) return complain("wrong data");
  crosstie_comm_destroy(comm);
  return 0;
}

int reduce_by_testing(int) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
  uint64_t one = 1;
  crosstie_request_t* request = nullptr;
  if (crosstie_allreduce(comm, &one, &one, 1, CROSSTIE_U64, CROSSTIE_SUM, nullptr, &request) !=
      CROSSTIE_OK)
    return complain("allreduce");
  for (int done = 0; !done;)
    if (crosstie_test(&request, &done) != CROSSTIE_OK) return complain("test");
  const int ranks = crosstie_comm_ranks(comm);
  crosstie_comm_destroy(comm);
  return request || one != static_cast<uint64_t>(ranks);
}

// Two communicators at once and a third after: ports, threads and endpoints do not mix.
int reduce_on_several(int rank) {
  crosstie_comm_t *first = nullptr, *second = nullptr;
  if (crosstie_comm_create(&first, nullptr) != CROSSTIE_OK) return complain("create first");
  if (crosstie_comm_create(&second, nullptr) != CROSSTIE_OK) return complain("create second");
  int failures = reduce_once(second, 1000, "ring", false) + reduce_once(first, 1000, "ring", true);
  crosstie_comm_destroy(rank % 2 ? first : second);
  crosstie_comm_destroy(rank % 2 ? second : first);
  crosstie_comm_t* third = nullptr;
  if (crosstie_comm_create(&third, nullptr) != CROSSTIE_OK) return complain("create third");
  failures += reduce_once(third, 1000, "hierarchical", false);
  crosstie_comm_destroy(third);
  return failures > 0;
}

// Who leaves as soon as its own part is done disturbs nobody who is still busy.
int come_and_go(int) {
  for (int round = 0; round < 20; round++) {
    crosstie_comm_t* comm = nullptr;
    if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
    if (reduce_once(comm, 1000, round % 2 ? "ring" : "hierarchical", false)) return 1;
    crosstie_comm_destroy(comm);
  }
  return 0;
}

int misuse(int) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
  float data[4] = {};
  crosstie_call_t call = CROSSTIE_CALL_INIT;
  call.algorithm = "telepathy";
  const auto reduce = [&](const void* in, void* out, size_t count, int type, int op) {
    return crosstie_allreduce(comm, in, out, count, static_cast<crosstie_type_t>(type),
                              static_cast<crosstie_op_t>(op), nullptr, nullptr);
  };
  int wrong = 0;
  wrong += reduce(nullptr, data, 4, CROSSTIE_F32, CROSSTIE_SUM) != CROSSTIE_ERR_INVALID;
  wrong += reduce(data, data + 1, 2, CROSSTIE_F32, CROSSTIE_SUM) != CROSSTIE_ERR_INVALID;
  wrong += reduce(reinterpret_cast<char*>(data) + 2, data, 1, CROSSTIE_F32, CROSSTIE_SUM) !=
           CROSSTIE_ERR_INVALID;
  wrong += reduce(data, data, 4, 99, CROSSTIE_SUM) != CROSSTIE_ERR_INVALID;
  wrong += reduce(data, data, 4, CROSSTIE_F32, 99) != CROSSTIE_ERR_INVALID;
  wrong += reduce(data, data, SIZE_MAX / 4, CROSSTIE_F32, CROSSTIE_SUM) != CROSSTIE_ERR_INVALID;
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_INVALID;
  wrong += std::strstr(crosstie_last_error(), "telepathy") == nullptr;
  call = CROSSTIE_CALL_INIT;
  call.algorithm = "nvls";
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_UNSUPPORTED;
  call = CROSSTIE_CALL_INIT;
  call.timeout = -1;
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_INVALID;
  call = CROSSTIE_CALL_INIT;
  call.stream = &call;
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_UNSUPPORTED;
  call = CROSSTIE_CALL_INIT;
  call.traffic_class = static_cast<crosstie_class_t>(7);
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_INVALID;
  call = CROSSTIE_CALL_INIT;
  call.check = 2;
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_INVALID;
  call = CROSSTIE_CALL_INIT;
  call.size = 3;
  wrong += crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &call, nullptr) !=
           CROSSTIE_ERR_INVALID;
  struct {
    crosstie_call_t call;
    char later[8];
  } newer = {CROSSTIE_CALL_INIT, {}};
  newer.call.size = sizeof newer;
  const auto reduce_newer = [&] {
    return crosstie_allreduce(comm, data, data, 4, CROSSTIE_F32, CROSSTIE_SUM, &newer.call,
                              nullptr);
  };
  wrong += reduce_newer() != CROSSTIE_OK;
  newer.later[3] = 1;
  wrong += reduce_newer() != CROSSTIE_ERR_UNSUPPORTED;
  // None of it has harmed the communicator.
  wrong += reduce_once(comm, 10, "ring", false);
  crosstie_comm_destroy(comm);
  return wrong;
}

bool has_ipv6_loopback() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return has;
}

// What a forked child may do with its parent's communicator: destroy it, without a word to others.
int fork_amid_a_job(int) {
  crosstie_comm_t* comm = nullptr;
  if (crosstie_comm_create(&comm, nullptr) != CROSSTIE_OK) return complain("create");
  if (reduce_once(comm, 1000, "ring", false)) return 1;
  const pid_t child = fork();
  if (child == 0) {
    float x = 1;
    const auto status =
        crosstie_allreduce(comm, &x, &x, 1, CROSSTIE_F32, CROSSTIE_SUM, nullptr, nullptr);
    const bool told = std::strstr(crosstie_last_error(), "child") != nullptr;
    crosstie_comm_destroy(comm);
    _exit(status == CROSSTIE_ERR_INVALID && told ? 0 : 1);
  }
  int ended = -1;
  if (waitpid(child, &ended, 0) != child || ended != 0) return complain("the child");
  const int failures = reduce_once(comm, 100000, "hierarchical", false);
  crosstie_comm_destroy(comm);
  return failures;
}

class Suite {
 public:
  void run(const std::string& name, const std::vector<int>& hosts, int (*body)(int),
           const std::vector<std::pair<std::string, std::string>>& variables = {},
           const std::string& address = "127.0.0.1") {
    Ranks ranks(hosts, body, variables, address);
    std::string why;
    const auto ends = ranks.wait(120s);
    for (size_t r = 0; r < ends.size(); r++)
      if (ends[r].code != 0)
        why += fmt::format("rank {}: {} {} ", r,
                           ends[r].ended ? fmt::format("code {}", ends[r].code) : "still running",
                           ends[r].said);
    tap_.check(why.empty(), name, why);
  }
  void skip(const char* name, const char* why) { tap_.skip(name, why); }
  int finish() const { return tap_.finish(); }

 private:
  Tap tap_;
};

// What a user may set, from ample to so little that every message waits for credits.
using Variables = std::vector<std::pair<std::string, std::string>>;
const std::vector<std::pair<const char*, Variables>> kSettings = {
    {"by default", {}},
    {"with small chunks and little scratch",
     {{"CROSSTIE_CHUNK", "4K"}, {"CROSSTIE_SCRATCH", "64K"}}},
    {"with short queues", {{"CROSSTIE_QUEUE_DEPTH", "1"}, {"CROSSTIE_SHM_RING", "64"}}},
    {"with large chunks", {{"CROSSTIE_CHUNK", "4M"}, {"CROSSTIE_SCRATCH", "64M"}}}};

// Hosts by settings; each is every count, algorithm and place by itself.
void run_matrix(Suite& suite) {
  for (const std::vector<int>& hosts : std::vector<std::vector<int>>{
           {2}, {1, 1}, {8}, {2, 2, 2}, {3, 3}, {1, 2, 4}, {6, 1, 1}, {1, 1, 1, 1, 1}})
    for (const auto& [how, variables] : kSettings)
      suite.run(fmt::format("hosts of {} ranks reduce every count {}", fmt::join(hosts, ", "), how),
                hosts, reduce_all, variables);
}

int main() {
  Suite suite;
  suite.run("one rank alone reduces to its own input", {1}, reduce_all);
  suite.run("three ranks of one host reduce every count", {3}, reduce_all);
  suite.run("one rank on each of three hosts reduces every count", {1, 1, 1}, reduce_all);
  suite.run("two hosts of four ranks reduce every count", {4, 4}, reduce_all);
  suite.run("hosts of 1, 2 and 3 ranks reduce every count", {1, 2, 3}, reduce_all);
  suite.run("hosts of 7 and 1 ranks reduce every count", {7, 1}, reduce_all);
  suite.run("small chunks and little scratch give the same result", {2, 3}, reduce_all,
            {{"CROSSTIE_CHUNK", "4K"}, {"CROSSTIE_SCRATCH", "64K"}});
  suite.run("ranks that compare their calls reduce every count", {2, 3}, reduce_all,
            {{"CROSSTIE_CHECK", "1"}});
  suite.run("requests end while nobody waits for them", {2, 2}, reduce_unattended);
  suite.run("a request ends by testing alone", {2, 1}, reduce_by_testing);
  suite.run("several communicators of one process do not mix", {2, 2}, reduce_on_several);
  suite.run("ranks that leave right after their last collective disturb nobody", {4, 2},
            come_and_go);
  const char* over_ipv6 = "ranks that meet at an IPv6 address reduce over IPv6";
  if (has_ipv6_loopback())
    suite.run(over_ipv6, {2, 1}, reduce_all, {}, "[::1]");
  else
    suite.skip(over_ipv6, "this host has no ::1");
  suite.run("a forked child leaves its parent's communicator alone", {2, 1}, fork_amid_a_job);
  suite.run("misuse is refused with a status and harms nothing", {1, 1}, misuse);
  if (whole_matrix()) run_matrix(suite);
  return suite.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(); }
