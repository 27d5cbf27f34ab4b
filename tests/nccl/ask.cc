// SPDX-License-Identifier: Apache-2.0
// ask COUNT: getCollInfo, COUNT times, of a communicator of 32 nodes of 8 GPUs whose table is full
// and tied. Prints the time of a call in nanoseconds; run under callgrind for its instructions.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "nccl/abi/tuner_v5.h"

namespace abi = crosstie::nccl::abi;

extern "C" {
extern const abi::TunerV5 ncclTunerPlugin_v5;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAlgorithms = 7, kProtocols = 3, kAllReduce = 4;

// From the slowest to the fastest, which is the most work for who sorts.
std::array<float, kAlgorithms * kProtocols> full_table() {
  std::array<float, kAlgorithms * kProtocols> table;
  for (size_t i = 0; i < table.size(); i++) table[i] = 1000 - static_cast<float>(i);
  return table;
}

void* communicator() {
  abi::NvlDomainInfoV5 domains{32, 8, 8};
  abi::TunerConstantsV5 constants{};
  void* context = nullptr;
  ncclTunerPlugin_v5.init(&context, 1, 256, 32, nullptr, &domains, &constants);
  return context;
}

// Not inlined, so that callgrind knows its calls.
[[gnu::noinline]] void ask_once(void* context, size_t bytes) {
  auto table = full_table();
  int channels = 0;
  ncclTunerPlugin_v5.get_coll_info(context, kAllReduce, bytes, 1,
                                   reinterpret_cast<float**>(table.data()), kAlgorithms, kProtocols,
                                   0, &channels);
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 100000);
  void* const context = communicator();
  std::vector<double> times;
  times.reserve(count);
  for (size_t i = 0; i < count; i++) {
    const auto from = Clock::now();
    ask_once(context, size_t{1} << (i % 33));
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - from).count());
  }
  ncclTunerPlugin_v5.finalize(context);
  std::ranges::sort(times);
  const auto at = [&](size_t percent) { return times[(times.size() - 1) * percent / 100]; };
  std::printf("getCollInfo: median %.0f ns, p99 %.0f ns, with the clock's own time\n", at(50),
              at(99));
}
