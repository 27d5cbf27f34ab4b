// SPDX-License-Identifier: Apache-2.0
// The tuner under each version of NCCL's interface. Whatever happens, NCCL hears success: any
// other answer would end the job.
#include <algorithm>
#include <memory>

#include "nccl/abi/tuner_v2.h"
#include "nccl/abi/tuner_v3.h"
#include "nccl/abi/tuner_v4.h"
#include "nccl/abi/tuner_v5.h"
#include "nccl/abi/tuner_v6.h"
#include "nccl/guarded.h"
#include "nccl/tuner.h"

namespace crosstie::nccl {
namespace {

constexpr char kName[] = "crosstie";
// NCCL's indices of links and capabilities in step_latency and the bandwidths; a generation later
// than ours is not read.
constexpr size_t kNvlink = 0, kPci = 1, kNetwork = 2;

NcclRelease::Latencies latencies_of(const double (&us)[kNcclAlgorithms][kNcclProtocols]) {
  NcclRelease::Latencies latencies;
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) latencies[a][p] = microseconds(us[a][p]);
  return latencies;
}

template <size_t capabilities>
NcclRelease::Limits limits_of(const double (&rates)[capabilities][3]) {
  NcclRelease::Limits limits;
  for (size_t generation = 0; generation < kNcclGenerations; generation++)
    for (size_t scale = 0; scale < 3; scale++)
      limits[generation][scale] = gigabytes(rates[generation][scale]);
  return limits;
}

template <class Constants>
NcclConstants constants_of(const Constants& told) {
  const auto& steps = told.step_latency;
  return {{latencies_of(told.base_latency), latencies_of(steps[kNvlink]), latencies_of(steps[kPci]),
           latencies_of(steps[kNetwork])},
          {limits_of(told.ll_most_bandwidth), limits_of(told.ring_ll128_channel_bandwidth),
           limits_of(told.tree_ll128_channel_bandwidth), limits_of(told.tree_channel_bandwidth),
           limits_of(told.nvls_tree_channel_bandwidth)}};
}

// A context stays null, and the tuner silent, where it could not be made.
abi::Result make(void** context, std::optional<uint64_t> id, const NcclCommunicator& communicator,
                 abi::Logger log) noexcept {
  *context = nullptr;
  return guarded([&] {
    *context = new Tuner(id, communicator, Environment::of_process(), Logger(log, abi::kLogTuning));
  });
}

// Ranks are taken to be spread evenly where NCCL does not tell how they are.
NcclCommunicator of_size(size_t ranks, size_t nodes) {
  NcclCommunicator communicator;
  communicator.ranks = static_cast<uint32_t>(ranks);
  communicator.nodes = static_cast<uint32_t>(nodes);
  if (nodes == 0) return communicator;
  communicator.fewest_ranks_per_domain = static_cast<uint32_t>(ranks / nodes);
  communicator.most_ranks_per_domain = static_cast<uint32_t>((ranks + nodes - 1) / nodes);
  return communicator;
}

// Versions 2 to 4.
abi::Result init_by_size(size_t ranks, size_t nodes, abi::Logger log, void** context) noexcept {
  return make(context, std::nullopt, of_size(ranks, nodes), log);
}

// Versions 5 to 7.
template <class Constants>
abi::Result init(void** context, uint64_t id, size_t ranks, size_t nodes, abi::Logger log,
                 abi::NvlDomainInfoV5* domains, Constants* constants) noexcept {
  NcclCommunicator communicator = of_size(ranks, nodes);
  if (domains != nullptr && domains->fewest_ranks > 0) {
    communicator.fewest_ranks_per_domain = static_cast<uint32_t>(domains->fewest_ranks);
    communicator.most_ranks_per_domain = static_cast<uint32_t>(domains->most_ranks);
  }
  if (constants != nullptr) communicator.constants = constants_of(*constants);
  return make(context, id, communicator, log);
}

uint32_t operations_of(int told) { return static_cast<uint32_t>(std::max(1, told)); }

// NCCL's own reader of version 2 gives the pair a time of 0 where both are set.
// Where the network's switches may reduce (collnet) there is no time to compare with.
abi::Result get_coll_info_v2(void* context, int function, size_t bytes, int collnet, int /*nvls*/,
                             int operations, int* algorithm, int* protocol,
                             int* channels) noexcept {
  if (context == nullptr || collnet != 0) return abi::kSuccess;
  return guarded([&] {
    const Decided decided = static_cast<Tuner*>(context)->decide(
        function, bytes, operations_of(operations), {}, channels);
    if (!decided) return;
    *algorithm = static_cast<int>(decided->algorithm);
    *protocol = static_cast<int>(decided->protocol);
  });
}

abi::Result get_coll_info(void* context, int function, size_t bytes, int operations, float** costs,
                          int algorithms, int protocols, int /*registered*/,
                          int* channels) noexcept {
  if (context == nullptr) return abi::kSuccess;
  return guarded([&] {
    const NcclCostTable table{reinterpret_cast<float*>(costs), algorithms, protocols};
    static_cast<Tuner*>(context)->decide(function, bytes, operations_of(operations), table,
                                         channels);
  });
}

abi::Result get_coll_info_v3(void* context, int function, size_t bytes, int operations,
                             float** costs, int algorithms, int protocols, int* channels) noexcept {
  return get_coll_info(context, function, bytes, operations, costs, algorithms, protocols, 0,
                       channels);
}

// NCCL calls this with null after a failed init.
abi::Result finalize(void* context) noexcept {
  return guarded([&] { delete static_cast<Tuner*>(context); });
}

}  // namespace

// NCCL looks for data under these names.
#pragma GCC visibility push(default)
extern "C" {
extern const abi::TunerV2 ncclTunerPlugin_v2;
extern const abi::TunerV3 ncclTunerPlugin_v3;
extern const abi::TunerV4 ncclTunerPlugin_v4;
extern const abi::TunerV5 ncclTunerPlugin_v5;
extern const abi::TunerV6 ncclTunerPlugin_v6;
extern const abi::TunerV7 ncclTunerPlugin_v7;
}
#pragma GCC visibility pop
const abi::TunerV2 ncclTunerPlugin_v2 = {kName, init_by_size, get_coll_info_v2, finalize};
const abi::TunerV3 ncclTunerPlugin_v3 = {kName, init_by_size, get_coll_info_v3, finalize};
const abi::TunerV4 ncclTunerPlugin_v4 = {kName, init_by_size, get_coll_info, finalize};
const abi::TunerV5 ncclTunerPlugin_v5 = {kName, init, get_coll_info, finalize};
const abi::TunerV6 ncclTunerPlugin_v6 = {kName, init, get_coll_info, finalize, nullptr};
const abi::TunerV7 ncclTunerPlugin_v7 = {kName, init, get_coll_info, finalize, nullptr};

}  // namespace crosstie::nccl
