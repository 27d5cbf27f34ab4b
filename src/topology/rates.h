// SPDX-License-Identifier: Apache-2.0
// What a link of a known kind carries one way. The values are those that NCCL counts with
// (2.28.9, src/graph/topo.h and topo.cc): rates that transfers reach, not the signalling rates.
#pragma once
#include "topology/device.h"

namespace crosstie {

// NCCL takes a link of unknown speed for PCIe 3, and of unknown width for x16.
inline constexpr double kAssumedPcieSpeed = 8;
inline constexpr int kAssumedPcieLanes = 16;
// NCCL's assumption for a network device that does not tell its speed.
inline constexpr Bandwidth kAssumedLineRate = gigabits(10);
// Between NUMA nodes of a CPU that the table below does not know: the slowest that it does.
inline constexpr Bandwidth kAssumedSysBandwidth = gigabytes(6);
// No port is faster: those of 2026 reach 1.6 Tb/s.
inline constexpr Bandwidth kMostLineRate = gigabits(10'000);
// What NCCL calls local: no bottleneck in any path.
inline constexpr Bandwidth kLocal = gigabytes(5000);

// Whether NCCL finds the text of a link_speed in its table; else it counts with PCIe 3.
bool nccl_knows_pcie_speed(std::string_view text);
// What a file of NCCL's tells of the device's PCIe speed, where NCCL does not know it.
const std::string* pcie_speed_unknown_to_nccl(const Device& device);
// "16 GT/s x8"
std::string pcie_text(double gigatransfers, int lanes);
// 75% of the rate after line coding: 8b/10b up to 5 GT/s, then nearly none.
Bandwidth pcie_bandwidth(double gigatransfers, int lanes);
// Of one NVLink of a GPU of that compute capability.
Bandwidth nvlink_bandwidth(int compute_capability);
// Of one xGMI link of a GPU of that architecture, as RCCL's files name it: 942, gfx90a. RCCL's
// values (rccl: src/graph/topo.h), which takes the slowest where it does not know the architecture.
Bandwidth xgmi_bandwidth(std::string_view gcn);
// What HIP tells as compute capability of a GPU of that architecture, 10 * major + minor; 0: none.
int capability_of_gcn(std::string_view gcn);
// How many NVLinks a GPU of that compute capability has at most; 0: not known, as many as any.
uint32_t most_nvlinks(int compute_capability);
// Between NUMA nodes of that CPU; none for a CPU that the table does not know.
std::optional<Bandwidth> sys_bandwidth(const CpuModel& cpu);

}  // namespace crosstie
