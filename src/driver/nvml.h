// SPDX-License-Identifier: Apache-2.0
// NVML (libnvidia-ml.so.1) as a table of functions. Its header comes with the CUDA toolkit,
// which is not needed to build, so the few declarations in use are stated here; they are part
// of NVML's stable ABI (the _v2 and _v3 entries never change).
#pragma once
#include "driver/library.h"

namespace crosstie {

struct NvmlDeviceObject;
using NvmlDevice = NvmlDeviceObject*;
enum NvmlReturn : int { kNvmlSuccess = 0 };
enum NvmlEnable : int { kNvmlDisabled = 0, kNvmlEnabled = 1 };

// nvmlPciInfo_t as of the _v3 entry.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfo) == 68);

inline constexpr unsigned kNvmlMostLinks = 36;  // NVML_NVLINK_MAX_LINKS as of driver 570
inline constexpr unsigned kNvmlTextBytes = 96;  // the longest of name, UUID, version buffers

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  const char* (*error_string)(NvmlReturn result) = nullptr;
  NvmlReturn (*driver_version)(char* text, unsigned bytes) = nullptr;
  NvmlReturn (*device_count)(unsigned* count) = nullptr;
  NvmlReturn (*device_by_index)(unsigned index, NvmlDevice* device) = nullptr;
  NvmlReturn (*pci_info)(NvmlDevice device, NvmlPciInfo* info) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  NvmlReturn (*name)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  NvmlReturn (*compute_capability)(NvmlDevice device, int* major, int* minor) = nullptr;
  NvmlReturn (*nvlink_state)(NvmlDevice device, unsigned link, NvmlEnable* state) = nullptr;
  NvmlReturn (*nvlink_remote)(NvmlDevice device, unsigned link, NvmlPciInfo* info) = nullptr;
};

// Opens the library and initialises NVML, which fails where no NVIDIA driver is loaded. Neither
// is undone: other users in the process (NCCL, CUDA) may share NVML's state.
Result<Driver<Nvml>> open_nvml();

}  // namespace crosstie
