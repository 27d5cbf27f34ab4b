// SPDX-License-Identifier: Apache-2.0
// The tuner under each version of NCCL's interface. Whatever happens, NCCL hears success: any
// other answer would end the job.
#include <memory>

#include "nccl/abi/tuner_v5.h"
#include "nccl/tuner.h"

namespace crosstie::nccl {
namespace {

constexpr char kName[] = "crosstie";
constexpr size_t kNvlink = 0, kNetwork = 2;  // rows of step_latency

std::array<Seconds, 3> by_protocol(const double (&us)[3]) {
  return {microseconds(us[0]), microseconds(us[1]), microseconds(us[2])};
}

NcclLatencies::Of latencies_of(Algorithm algorithm, const abi::TunerConstantsV5& constants) {
  const auto a = static_cast<size_t>(algorithm);
  return {by_protocol(constants.base_latency[a]), by_protocol(constants.step_latency[kNvlink][a]),
          by_protocol(constants.step_latency[kNetwork][a])};
}

NcclCommunicator communicator_of(size_t ranks, size_t nodes, const abi::NvlDomainInfoV5& domains,
                                 const abi::TunerConstantsV5& constants) {
  return {static_cast<uint32_t>(ranks),
          static_cast<uint32_t>(nodes),
          static_cast<uint32_t>(domains.fewest_ranks),
          static_cast<uint32_t>(domains.most_ranks),
          {latencies_of(Algorithm::tree, constants), latencies_of(Algorithm::ring, constants)}};
}

// Runs the body; nothing that it throws leaves.
template <class Body>
abi::Result guarded(const Body& body) noexcept {
  try {
    body();
  } catch (...) {
    // A tuner that cannot answer has no opinion; NCCL's own choice stands.
  }
  return abi::kSuccess;
}

// A context stays null, and the tuner silent, where it could not be made.
abi::Result init_v5(void** context, uint64_t id, size_t ranks, size_t nodes, abi::Logger log,
                    abi::NvlDomainInfoV5* domains, abi::TunerConstantsV5* constants) noexcept {
  *context = nullptr;
  if (domains == nullptr || constants == nullptr) return abi::kSuccess;
  return guarded([&] {
    *context = new Tuner(id, communicator_of(ranks, nodes, *domains, *constants),
                         Environment::of_process(), Logger(log, abi::kLogTuning));
  });
}

abi::Result get_coll_info_v5(void* context, int function, size_t bytes, int /*pipelined*/,
                             float** costs, int algorithms, int protocols, int /*registered*/,
                             int* /*channels*/) noexcept {
  if (context == nullptr) return abi::kSuccess;
  return guarded([&] {
    const NcclCostTable table{reinterpret_cast<float*>(costs), algorithms, protocols};
    static_cast<Tuner*>(context)->decide(function, bytes, table);
  });
}

// NCCL calls this with null after a failed init.
abi::Result finalize_v5(void* context) noexcept {
  return guarded([&] { delete static_cast<Tuner*>(context); });
}

}  // namespace

extern "C" {
// NCCL looks for data under this name.
[[gnu::visibility("default")]] extern const abi::TunerV5 ncclTunerPlugin_v5;
const abi::TunerV5 ncclTunerPlugin_v5 = {kName, init_v5, get_coll_info_v5, finalize_v5};
}

}  // namespace crosstie::nccl
