// SPDX-License-Identifier: Apache-2.0
#include "cost/parameters.h"

#include <cmath>

namespace crosstie {
namespace {

constexpr ParameterUnit kUs = ParameterUnit::microseconds, kShare = ParameterUnit::share,
                        kGbs = ParameterUnit::gigabytes_per_second;

// NCCL's constants (2.28.9, src/graph/tuning.cc) are where most steps start from: they were
// fitted to NVIDIA's own machines.
constexpr std::string_view kNccl = "NCCL 2.28.9, src/graph/tuning.cc";
constexpr std::string_view kRccl = "RCCL, of NCCL 2.21.5, src/graph/tuning.cc";
constexpr std::string_view kGuess = "order of magnitude";

constexpr std::array<ParameterRow, kParameters> kRows = {{
    {"launch", kUs, 4.0, 1.35, "start of a kernel and end of the operation", kGuess},
    {"launch_per_gpu", kUs, 1.0, 1.6, "for each GPU that one process drives: the driver's lock",
     kGuess},
    {"ll128_start", kUs, 7.0, 1.6, "LL128, once", kNccl},
    {"simple_start", kUs, 5.0, 2.2, "Simple, once", kNccl},
    {"tree_start", kUs, 1.5, 2.0, "a tree, once: it goes up, then down", kGuess},

    {"ll_step", kUs, 0.7, 1.5, "LL, a step over NVLink", kNccl},
    {"ll128_step", kUs, 1.6, 1.5, "LL128, a step over NVLink", kNccl},
    {"simple_step", kUs, 3.5, 1.5, "Simple, a step over NVLink", kNccl},
    {"tree_step", ParameterUnit::count, 0.9, 1.35, "a tree's step inside a node, in ring steps",
     kNccl},
    {"pcie_step", ParameterUnit::count, 1.7, 1.5, "a step over PCIe, in steps over NVLink", kNccl},
    {"xgmi_step", ParameterUnit::count, 0.9, 1.35, "a step over xGMI, in steps over NVLink", kRccl},
    {"amd_ll128_step", kUs, 4.0, 1.5,
     "LL128, a ring's step of 1 KiB and more over xGMI: all of RCCL's channels wait", kGuess},
    {"amd_tree_step", ParameterUnit::count, 0.9, 1.35,
     "a tree's step inside a node, in ring steps: RCCL", kRccl},
    {"proxy_step", kUs, 2.0, 1.65,
     "least time of a ring's step inside a node where the ring crosses nodes: the proxies of the "
     "others are in the way",
     kNccl},

    {"ll_network_step", kUs, 4.0, 1.35, "LL, a step between nodes", kNccl},
    {"ll128_network_step", kUs, 6.0, 1.35, "LL128, a step between nodes", kNccl},
    {"simple_network_step", kUs, 14.0, 1.35, "Simple, a step between nodes", kNccl},
    {"roce_step", kUs, 1.0, 2.7, "more than InfiniBand for each step: RoCE", "UCX, ib_iface.c"},
    {"efa_step", kUs, 15.0, 2.0, "more than InfiniBand for each step: EFA", kGuess},
    {"slingshot_step", kUs, 3.0, 2.0, "more than InfiniBand for each step: Slingshot", kGuess},
    {"sockets_step", kUs, 20.0, 2.0, "more than InfiniBand for each step: sockets", kGuess},
    {"tcpx_step", kUs, 60.0, 2.7, "more than InfiniBand for each step: GPUDirect-TCPX", kGuess},
    {"amd_network_step", kUs, 20.0, 2.7, "more for each step between nodes: RCCL", kGuess},
    {"rendezvous_step", kUs, 5.0, 1.65,
     "more for each step with a message above rendezvous_bytes: Slingshot", kGuess},
    {"rendezvous_bytes", ParameterUnit::bytes, 4000, 1.65,
     "message from which Slingshot asks the receiver first", kGuess},

    {"ll_share", kShare, 0.45, 1.16, "LL, of the wire: half of it is flags", kNccl},
    {"ll128_share", kShare, 0.92, 1.03, "LL128, of the wire: 8 of 128 bytes are flags", kNccl},
    {"amd_ll128_share", kShare, 0.9375, 1.1, "LL128 of a link's rate: RCCL", kGuess},
    {"nvlink2_share", kShare, 0.85, 1.1, "rings over NVLink 2", "NCCL: 20 to 22 of 25 GB/s a link"},
    {"nvlink3_share", kShare, 0.80, 1.1, "rings over NVLink 3", "NCCL: 20 of 25 GB/s a link"},
    {"nvlink4_share", kShare, 0.81, 1.05, "rings over NVLink 4", "NCCL: 20.6 of 25 GB/s a link"},
    {"nvlink5_share", kShare, 0.77, 1.05, "rings over NVLink 5", "NCCL: 40.1 of 50 GB/s a link"},
    {"pcie_share", kShare, 0.60, 1.65, "rings over PCIe, most through the CPU's memory", kGuess},
    {"xgmi_share", kShare, 0.70, 1.35, "rings over xGMI", kGuess},
    {"partitions_share", kShare, 0.50, 1.8, "rings over the links of partitions", kGuess},
    {"infiniband_share", kShare, 0.95, 1.05, "InfiniBand and RoCE",
     "ib_write_bw: 46 to 48.5 of 50 GB/s"},
    {"efa_share", kShare, 0.92, 1.07, "EFA", kGuess},
    {"slingshot_share", kShare, 0.95, 1.07, "Slingshot", kGuess},
    {"sockets_share", kShare, 0.10, 2.0, "sockets over a NIC of 200 Gb/s", kGuess},
    {"tcpx_share", kShare, 0.80, 1.35, "GPUDirect-TCPX", kGuess},
    {"behind_cpu_share", kShare, 0.75, 1.2, "of the above where a host bridge is on the way",
     kGuess},

    {"ll_proxy_intel", kGbs, 3.0, 2.0, "LL lines read by a proxy thread: Intel", kNccl},
    {"ll_proxy_amd", kGbs, 3.0, 2.0, "LL lines read by a proxy thread: AMD", kNccl},
    {"ll_proxy_arm", kGbs, 1.0, 2.0, "LL lines read by a proxy thread: Arm", kGuess},

    {"tree_share", ParameterUnit::count, 1.05, 1.1, "trees inside a node, of what rings get",
     kGuess},
    {"tree_network_share", kShare, 0.90, 1.2, "trees between nodes, of what rings get", kNccl},
    {"amd_tree_share", kShare, 0.80, 1.35, "trees inside a node, of what rings get: RCCL", kGuess},
    {"tree_channel_sm80", kGbs, 24.0, 1.35, "a tree's channel, A100", kNccl},
    {"tree_channel_sm90", kGbs, 38.0, 1.2, "a tree's channel, H100", kNccl},
    {"tree_channel_sm100", kGbs, 70.0, 1.35, "a tree's channel, B200", kNccl},

    {"multicast_start", kUs, 25.0, 1.35, "NVLS, once", kNccl},
    {"multicast_nvlink4_share", kShare, 0.69, 1.1, "NVLS over NVLink 4", "480 GB/s of H100 x 8"},
    {"multicast_nvlink5_share", kShare, 0.61, 1.1, "NVLS over NVLink 5", "846 GB/s of B200 x 8"},
    {"multicast_echo", ParameterUnit::count, 0.7, 1.35,
     "what a GPU's own part costs it in an AllReduce by NVLS, of its bytes", kGuess},
    {"multicast_spread", ParameterUnit::count, 0.05, 2.0,
     "how much longer NVLS takes for its bytes with each doubling of the ranks beyond 8", kGuess},
    {"multicast_tree_step", kUs, 18.0, 1.5, "NVLSTree, a step between nodes", kNccl},
    {"multicast_tree_share", kShare, 0.80, 1.2, "NVLSTree, of the network on 2 nodes", kGuess},
    {"multicast_wide_share", kShare, 0.37, 1.5, "NVLSTree, of that in chunks of 64 KiB",
     "NVIDIA/nccl 1112, 2035"},

    {"ring_pipeline", kShare, 0.15, 2.2, "rings", kGuess},
    {"tree_pipeline", kShare, 0.40, 2.2, "trees", kGuess},
    {"multicast_pipeline", kShare, 0.30, 2.2, "NVLS", kGuess},
    {"multicast_tree_pipeline", kShare, 0.40, 2.2, "NVLSTree", kGuess},
    {"chain_pipeline", kShare, 0.10, 2.7, "Broadcast and Reduce", kGuess},
    {"amd_pipeline", kShare, 0.50, 2.2, "of the above: RCCL", kGuess},
    {"amd_overlap", kShare, 0.30, 2.0,
     "of the lesser of a ring's steps and bytes, hidden by the other: RCCL", kGuess},
    {"pipeline_bytes", ParameterUnit::bytes, 5e7, 2.0,
     "buffer beyond which chunks grow no more, and so neither does what they fail to hide",
     "NCCL 2.28.9, src/enqueue.cc: chunks of 512 KiB on 16 channels, some at a time"},
    {"chain_steps", ParameterUnit::count, 2.0, 1.65,
     "steps of a Broadcast or Reduce that operations in a row do not hide", kNccl},
}};

}  // namespace

const std::array<ParameterRow, kParameters>& parameter_rows() { return kRows; }

// LL has 4 bytes of flag for 4 of data, LL128 8 for 120.
double most(Parameter parameter) {
  if (parameter == Parameter::ll_share) return 0.5;
  if (parameter == Parameter::ll128_share) return 120.0 / 128;
  return row_of(parameter).unit == ParameterUnit::share ? 1 : HUGE_VAL;
}

ParameterValues ParameterValues::expected() {
  ParameterValues values;
  for (size_t i = 0; i < kParameters; i++) values.all()[i] = kRows[i].expected;
  return values;
}

}  // namespace crosstie
