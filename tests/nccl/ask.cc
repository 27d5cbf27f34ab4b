// SPDX-License-Identifier: Apache-2.0
// ask COUNT: getCollInfo, COUNT times, of a communicator of a DGX H100 that is to be known by
// NCCL's table, which is the most work: all systems' times are compared. Prints the time of a call
// in nanoseconds; run under callgrind for its instructions.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "choice/nccl_table.h"
#include "cost/nccl/model.h"
#include "cost/system.h"
#include "nccl/abi/tuner_v5.h"
#include "topology/format/formats.h"

using namespace crosstie;
namespace abi = crosstie::nccl::abi;

extern "C" {
extern const abi::TunerV5 ncclTunerPlugin_v5;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAllReduce = static_cast<int>(Collective::all_reduce);
constexpr size_t kSizes = 33;
using Costs = std::array<float, kNcclAlgorithms * kNcclProtocols>;

Costs costs_of(const NcclModel& nccl, uint64_t bytes) {
  Costs costs;
  for (size_t i = 0; i < costs.size(); i++) {
    const auto algorithm = static_cast<Algorithm>(i / kNcclProtocols);
    const auto protocol = static_cast<Protocol>(i % kNcclProtocols);
    const auto time = nccl.time({Collective::all_reduce, bytes}, algorithm, protocol);
    costs[i] = time ? static_cast<float>(time->count() * 1e6) : kNcclIgnored;
  }
  return costs;
}

template <size_t n>
void copy(const NcclRelease::Limits& from, double (&to)[n][3]) {
  for (size_t generation = 0; generation < from.size(); generation++)
    for (size_t scale = 0; scale < 3; scale++)
      to[generation][scale] = from[generation][scale].bytes_per_second / 1e9;
}
void copy(const NcclRelease::Latencies& from, double (&to)[kNcclAlgorithms][kNcclProtocols]) {
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) to[a][p] = from[a][p].count() * 1e6;
}

abi::TunerConstantsV5 constants_of(const NcclRelease& release) {
  abi::TunerConstantsV5 to{};
  copy(release.latency.base, to.base_latency);
  copy(release.latency.nvlink, to.step_latency[0]);
  copy(release.latency.pci, to.step_latency[1]);
  copy(release.latency.network, to.step_latency[2]);
  copy(release.bandwidth.ll, to.ll_most_bandwidth);
  copy(release.bandwidth.ring_ll128, to.ring_ll128_channel_bandwidth);
  copy(release.bandwidth.tree_ll128, to.tree_ll128_channel_bandwidth);
  copy(release.bandwidth.tree, to.tree_channel_bandwidth);
  copy(release.bandwidth.nvls_tree, to.nvls_tree_channel_bandwidth);
  return to;
}

struct Asked {
  void* context = nullptr;
  std::array<Costs, kSizes> tables;

  // Not inlined, so that callgrind knows its calls. Whether anything was decided.
  [[gnu::noinline]] bool once(size_t size) const {
    Costs costs = tables[size];
    int channels = 0;
    ncclTunerPlugin_v5.get_coll_info(context, kAllReduce, size_t{1} << size, 1,
                                     reinterpret_cast<float**>(costs.data()), kNcclAlgorithms,
                                     kNcclProtocols, 0, &channels);
    return costs != tables[size];
  }
};

Asked make() {
  const auto release = find_nccl_release({2, 28, 9})->release;
  const auto machine = read_synthetic("dgx-h100")->hosts[0].machine;
  const NcclModel nccl(release, model_job(machine, 1, 8, release)->nccl);
  Asked asked;
  for (size_t i = 0; i < kSizes; i++) asked.tables[i] = costs_of(nccl, uint64_t{1} << i);
  abi::NvlDomainInfoV5 domains{1, 8, 8};
  abi::TunerConstantsV5 constants = constants_of(release);
  ncclTunerPlugin_v5.init(&asked.context, 1, 8, 1, nullptr, &domains, &constants);
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 100000);
  const Asked asked = make();
  std::vector<double> times;
  times.reserve(count);
  size_t decided = 0;
  for (size_t i = 0; i < count; i++) {
    const auto from = Clock::now();
    decided += asked.once(i % kSizes);
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - from).count());
  }
  ncclTunerPlugin_v5.finalize(asked.context);
  std::ranges::sort(times);
  const auto at = [&](size_t percent) { return times[(times.size() - 1) * percent / 100]; };
  std::printf("getCollInfo: median %.0f ns, p99 %.0f ns, with the clock's own time; %zu decided\n",
              at(50), at(99), decided);
  return decided * 2 > count ? 0 : 1;
}
