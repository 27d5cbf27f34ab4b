// SPDX-License-Identifier: Apache-2.0
// This host as it is: hwloc and sysfs for CPUs and PCI, verbs for ports, NVML for GPUs and
// NVLinks, CUDA where there is no NVML. Whatever does not answer leaves a gap.
#pragma once
#include <string>

#include "driver/drivers.h"
#include "topology/machine.h"

namespace crosstie {

struct LiveSources {
  const Drivers& drivers;
  std::string host;         // its name
  std::string hwloc_xml{};  // a recorded hwloc topology to read in place of this host's; for tests
  std::string hcas{};       // which RDMA ports count (NCCL_IB_HCA); empty: all
};

// Fails where hwloc cannot start or shows another machine than this, and where what was found is no
// Machine (validate).
Result<Machine> probe_live(const LiveSources& sources);

}  // namespace crosstie
