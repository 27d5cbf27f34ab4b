// SPDX-License-Identifier: Apache-2.0
// An NVML of two GPUs (1b:01.0, 93:01.0) that share 18 NVLinks through two NVSwitches; a test
// changes what it will.
#pragma once
#include <cstdio>
#include <cstring>

#include "driver/nvml.h"

namespace crosstie::fake {

// Handles are the addresses of these bytes.
inline char nvml_gpus[32];  // two GPUs, and room for their partitions

inline unsigned nvml_index(NvmlDevice device) {
  return static_cast<unsigned>(reinterpret_cast<char*>(device) - nvml_gpus);
}

inline void nvml_address(NvmlPciInfo* info, unsigned bus, unsigned device) {
  *info = {};
  info->bus = bus;
  info->device = device;
}

inline Nvml nvml() {
  Nvml n;
  n.error_string = [](NvmlReturn) { return "made to fail"; };
  n.device_count = [](unsigned* count) { return *count = 2, kNvmlSuccess; };
  n.device_by_index = [](unsigned index, NvmlDevice* device) {
    *device = reinterpret_cast<NvmlDevice>(nvml_gpus + index);
    return kNvmlSuccess;
  };
  n.pci_info = [](NvmlDevice device, NvmlPciInfo* info) {
    nvml_address(info, nvml_index(device) == 0 ? 0x1b : 0x93, 1);
    return kNvmlSuccess;
  };
  n.uuid = [](NvmlDevice device, char* text, unsigned bytes) {
    std::snprintf(text, bytes, "GPU-%u", nvml_index(device));
    return kNvmlSuccess;
  };
  n.name = [](NvmlDevice, char* text, unsigned bytes) {
    std::snprintf(text, bytes, "NVIDIA H100 80GB HBM3");
    return kNvmlSuccess;
  };
  n.compute_capability = [](NvmlDevice, int* major, int* minor) {
    *major = 9, *minor = 0;
    return kNvmlSuccess;
  };
  // As real ones do, it answers for links that the GPU does not have.
  n.nvlink_state = [](NvmlDevice, unsigned link, NvmlEnable* state) {
    *state = link < 18 ? kNvmlEnabled : kNvmlDisabled;
    return kNvmlSuccess;
  };
  n.nvlink_remote = [](NvmlDevice, unsigned link, NvmlPciInfo* info) {
    nvml_address(info, 0xfe, link % 2);
    return kNvmlSuccess;
  };
  n.nvlink_capability = [](NvmlDevice, unsigned, NvmlLinkCapability, unsigned* has) {
    return *has = 1, kNvmlSuccess;
  };
  return n;
}

}  // namespace crosstie::fake
