// SPDX-License-Identifier: Apache-2.0
// The tuner as NCCL asks it, under the interfaces that tell it least.
#include <criterion/criterion.h>

#include <array>
#include <cstdlib>

#include "nccl/abi/tuner_v2.h"
#include "nccl/abi/tuner_v4.h"

using namespace crosstie::nccl;

extern "C" {
extern const abi::TunerV2 ncclTunerPlugin_v2;
extern const abi::TunerV4 ncclTunerPlugin_v4;
}

namespace {

constexpr int kAllGather = 2, kAllReduce = 4;
constexpr int kTree = 0, kRing = 1, kNvls = 4, kAlgorithms = 7;
constexpr int kLl = 0, kLl128 = 1, kSimple = 2, kProtocols = 3;

// Of a process: its environment is read once.
void expect_only_what_runs_anywhere(const char* machine) {
  setenv("CROSSTIE_PROFILE", machine, 1);
  for (const size_t nodes : {1, 2, 256}) {
    void* context = nullptr;
    const size_t ranks = nodes == 256 ? 256 : 8 * nodes;
    ncclTunerPlugin_v2.init(ranks, nodes, nullptr, &context);
    for (const int function : {kAllGather, kAllReduce})
      for (size_t bytes = 8; bytes <= size_t{1} << 33; bytes *= 2) {
        int algorithm = -1, protocol = -1, channels = 0;
        ncclTunerPlugin_v2.get_coll_info(context, function, bytes, 1, 1, 1, &algorithm, &protocol,
                                         &channels);
        cr_assert(algorithm == -1 && protocol == -1, "switches of the network may reduce");
        ncclTunerPlugin_v2.get_coll_info(context, function, bytes, 0, 1, 1, &algorithm, &protocol,
                                         &channels);
        cr_assert(algorithm == -1 || algorithm == kRing || algorithm == kTree);
        cr_assert(protocol == -1 || protocol == kLl || protocol == kSimple);
        cr_assert((algorithm == -1) == (protocol == -1));
      }
    ncclTunerPlugin_v2.destroy(context);
  }
}

}  // namespace

// NCCL 2.21 has six algorithms, and runs LL128 where it would itself take it for unsafe.
Test(tuner, interface_2_never_answers_what_nccl_would_not_check_on_a_dgx_a100) {
  expect_only_what_runs_anywhere("dgx-a100");
}
Test(tuner, interface_2_never_answers_what_nccl_would_not_check_over_pcie) {
  expect_only_what_runs_anywhere("pcie-4090x8");
}

// Interfaces before 5 do not tell how many ranks a node has.
Test(tuner, nvls_is_chosen_too_where_nccl_does_not_tell_the_ranks_of_a_node) {
  setenv("CROSSTIE_PROFILE", "dgx-h100", 1);
  void* context = nullptr;
  cr_assert(ncclTunerPlugin_v4.init(8, 1, nullptr, &context) == abi::kSuccess && context);
  std::array<float, kAlgorithms * kProtocols> table;
  table.fill(-1);
  for (const int protocol : {kLl, kLl128, kSimple}) table[kRing * kProtocols + protocol] = 100;
  float& nvls = table[kNvls * kProtocols + kSimple] = 200;
  int channels = 0;
  ncclTunerPlugin_v4.get_coll_info(context, kAllReduce, size_t{1} << 30, 1,
                                   reinterpret_cast<float**>(table.data()), kAlgorithms, kProtocols,
                                   0, &channels);
  cr_assert(nvls < 1);
  ncclTunerPlugin_v4.destroy(context);
}
