// SPDX-License-Identifier: Apache-2.0
// The plugin as NCCL's threads use it, for the thread sanitizer too: eight threads create, ask and
// destroy communicators of different shapes in random order, and of each shape all get the same
// answers. NCCL itself has no part in it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "knobs.h"
#include "nccl/abi/profiler_v4.h"
#include "nccl/abi/tuner_v5.h"
#include "nccl/process.h"
#include "tap.h"

namespace abi = crosstie::nccl::abi;
using crosstie::test::Random;
using crosstie::test::Tap;

extern "C" {
extern const abi::TunerV5 ncclTunerPlugin_v5;
extern const abi::ProfilerV5 ncclProfiler_v5;
}

// Counts what a thread allocates while it counts.
namespace {
thread_local bool counting = false;
std::atomic<int> allocations = 0;
}  // namespace

void* operator new(size_t size) {
  if (counting) allocations++;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (counting) allocations++;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

constexpr int kAlgorithms = 7, kProtocols = 3, kCollectives = 5;
constexpr int kRing = 1, kTree = 0, kNvlsTree = 5, kSimple = 2, kLl = 0;

using Table = std::array<float, kAlgorithms * kProtocols>;

struct Shape {
  size_t ranks, nodes;
  const char* name;
};
constexpr Shape kShapes[] = {
    {8, 1, "TENSOR_MODEL_PARALLEL_GROUP:0"},
    {2, 1, "mesh_tp:1"},
    {2, 2, "PIPELINE_MODEL_PARALLEL_GROUP:2"},
    {16, 4, "DATA_PARALLEL_GROUP:3"},
    {64, 8, "mesh_dp:4"},
    {64, 64, nullptr},
    {512, 64, "EXPERT_MODEL_PARALLEL_GROUP:5"},
};

// NCCL would take Ring/Simple or NVLS_TREE.
Table table_of(size_t bytes, int collective) {
  Table table;
  table.fill(-1);
  const auto us = 20 + static_cast<float>(bytes) / 50000;
  table[kRing * kProtocols + kSimple] = us * 1.03f;
  table[kRing * kProtocols + kLl] = us * 1.02f;
  table[kTree * kProtocols + kLl] = us * 1.04f;
  if (collective == 4 && bytes > 100000) table[kNvlsTree * kProtocols + kSimple] = us;
  return table;
}

void quiet(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}

// One rank's communicator: NCCL makes the profiler, then the tuner, and ends them in any order.
struct Communicator {
  Communicator(const Shape& shape, uint64_t id) : shape_(shape) {
    int mask = -1;
    ncclProfiler_v5.init(&profiler_, id, &mask, shape.name, static_cast<int>(shape.nodes),
                         static_cast<int>(shape.ranks), 0, quiet);
    const int per_node = static_cast<int>(shape.ranks / shape.nodes);
    abi::NvlDomainInfoV5 domains{static_cast<int>(shape.nodes), per_node, per_node};
    ncclTunerPlugin_v5.init(&tuner_, id, shape.ranks, shape.nodes, quiet, &domains, nullptr);
  }

  // What is in the table after the tuner, of all collectives and some sizes.
  std::vector<Table> answers() const {
    std::vector<Table> all;
    for (int collective = 0; collective < kCollectives; collective++)
      for (size_t bytes = 64; bytes <= size_t{1} << 30; bytes *= 16)
        all.push_back(ask(collective, bytes));
    return all;
  }

  Table ask(int collective, size_t bytes) const {
    Table table = table_of(bytes, collective);
    int channels = 0;
    ncclTunerPlugin_v5.get_coll_info(tuner_, collective, bytes, 1,
                                     reinterpret_cast<float**>(table.data()), kAlgorithms,
                                     kProtocols, 0, &channels);
    return table;
  }

  void end(bool tuner_first) {
    if (tuner_first) ncclTunerPlugin_v5.finalize(tuner_);
    ncclProfiler_v5.finalize(profiler_);
    if (!tuner_first) ncclTunerPlugin_v5.finalize(tuner_);
  }

  Shape shape_;
  void *profiler_ = nullptr, *tuner_ = nullptr;
};

std::vector<std::vector<Table>> expected_answers() {
  std::vector<std::vector<Table>> all;
  for (const Shape& shape : kShapes) {
    Communicator communicator(shape, all.size());
    all.push_back(communicator.answers());
    communicator.end(true);
  }
  return all;
}

// Ranks of one communicator may live in several threads: numbers are shared by all.
void live(uint64_t seed, int rounds, const std::vector<std::vector<Table>>& expected,
          std::atomic<int>& wrong) {
  Random random(seed);
  std::vector<std::pair<size_t, Communicator>> alive;
  for (int i = 0; i < rounds; i++) {
    if (alive.size() < 12) {
      const size_t which = random() % std::size(kShapes);
      alive.emplace_back(which, Communicator(kShapes[which], which + 100 * (random() % 3)));
    }
    const size_t one = random() % alive.size();
    if (alive[one].second.answers() != expected[alive[one].first]) wrong++;
    if (random() % 2) continue;
    alive[one].second.end(random() % 2);
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(one));
  }
  for (auto& [which, communicator] : alive) communicator.end(false);
}

void many_threads(Tap& tap) {
  const auto expected = expected_answers();
  const uint64_t seed = crosstie::test::test_seed();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 8; i++)
    threads.emplace_back(live, seed + i, crosstie::test::rounds(200), std::cref(expected),
                         std::ref(wrong));
  for (std::thread& thread : threads) thread.join();
  tap.check(wrong == 0, "eight threads get the answers that one alone gets, in any order");
  tap.check(crosstie::nccl::communicators_known() == 0, "and leave nothing of the process's");
  const auto some = [](const std::vector<Table>& answers) {
    return std::ranges::any_of(answers,
                               [](const Table& t) { return std::ranges::count(t, 1e-3f); });
  };
  tap.check(std::ranges::any_of(expected, some), "and something is decided at all");
}

void two_hundred(Tap& tap) {
  std::vector<Communicator> pairs;
  for (uint64_t i = 0; i < 200; i++) pairs.emplace_back(kShapes[1], 1000 + i);
  const auto first = pairs.front().answers();
  const bool same = std::ranges::all_of(pairs, [&](auto& c) { return c.answers() == first; });
  tap.check(same, "two hundred communicators of two ranks at once answer alike");
  for (size_t i = 0; i < pairs.size(); i++) pairs[i * 77 % pairs.size()].end(i % 2);
  tap.check(crosstie::nccl::communicators_known() == 0, "and end in any order");
}

void no_allocations(Tap& tap) {
  Communicator communicator(kShapes[3], 1);
  counting = true;
  for (int i = 0; i < 3; i++)
    for (size_t bytes = 1; bytes <= size_t{1} << 33; bytes *= 2) communicator.ask(4, bytes);
  counting = false;
  communicator.end(true);
  tap.check(allocations == 0, "asking allocates nothing, the first time included",
            fmt::format("{} allocations", allocations.load()));
}

}  // namespace

int main() {
  setenv("CROSSTIE_PROFILE", "dgx-h100", 1);
  Tap tap;
  many_threads(tap);
  two_hundred(tap);
  no_allocations(tap);
  return tap.finish();
}
