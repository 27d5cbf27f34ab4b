// SPDX-License-Identifier: Apache-2.0
// What the model of our own reads of a system: facts of its links, as data sheets and topologies
// tell them. Nothing in it is measured, and nothing is local: every rank of a job has the same.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "base/words.h"
#include "topology/machine.h"

namespace crosstie {

// What joins the GPUs of a node. The generations of NVLink, PCIe through the CPU or a switch, AMD's
// links between GPUs, and those between partitions of GPUs (CPX).
enum class GpuLink : uint8_t { nvlink2, nvlink3, nvlink4, nvlink5, pcie, xgmi, xgmi_partitions };
template <>
struct Names<GpuLink> {
  static constexpr std::array<std::string_view, 7> all = {
      "nvlink2", "nvlink3", "nvlink4", "nvlink5", "pcie", "xgmi", "xgmi_partitions"};
};

// What joins the nodes, as NCCL reaches it: RDMA over InfiniBand, RoCE, AWS EFA or HPE Slingshot;
// sockets; GPUDirect-TCPX of Google's A3.
enum class Network : uint8_t { none, infiniband, roce, efa, slingshot, sockets, tcpx };
template <>
struct Names<Network> {
  static constexpr std::array<std::string_view, 7> all = {"none",      "infiniband", "roce", "efa",
                                                          "slingshot", "sockets",    "tcpx"};
};

enum class CpuVendor : uint8_t { intel, amd, arm, other };
template <>
struct Names<CpuVendor> {
  static constexpr std::array<std::string_view, 4> all = {"intel", "amd", "arm", "other"};
};

// Of one node, which is NCCL's: all hosts whose GPUs share an NVLink domain.
struct SystemFacts {
  uint32_t compute_capability = 0;
  CpuVendor cpu = CpuVendor::other;
  GpuLink gpu_link = GpuLink::pcie;
  Bandwidth gpu_wire{};    // of all links of one GPU to its peers
  bool multicast = false;  // NVSwitches that reduce: NVLS
  uint32_t gpus = 0;
  uint32_t nics = 0;     // at most one a GPU: the ports that serve one together are one
  Bandwidth nic_wire{};  // of one NIC
  Network network = Network::none;
  bool nics_behind_cpu = false;  // GPUs reach their NICs through a host bridge

  bool operator==(const SystemFacts&) const = default;
  // Of so many hosts of an NVLink domain, which are one node: the NICs of all serve it.
  SystemFacts of_hosts(uint32_t hosts) const {
    SystemFacts all = *this;
    all.gpus *= hosts, all.nics *= hosts;
    return all;
  }
  bool amd_gpus() const { return gpu_link >= GpuLink::xgmi; }
  bool has_nvlink() const { return gpu_link <= GpuLink::nvlink5; }
};

// Of a host's kind, or of hosts of an NVLink domain fused to one. Where GPUs or NICs are not alike
// the slowest speaks for all. Fails where there is no GPU.
Result<SystemFacts> facts_of(const Machine& machine);

}  // namespace crosstie
