// SPDX-License-Identifier: Apache-2.0
#include "driver/nvml.h"

#include <array>

namespace crosstie {
namespace {

Result<Nvml> find_functions(const Library& library) {
  Nvml n;
  const Status found =
      find(library, "nvmlInit_v2", n.init)()
          .and_then(find(library, "nvmlErrorString", n.error_string))
          .and_then(find(library, "nvmlSystemGetDriverVersion", n.driver_version))
          .and_then(find(library, "nvmlDeviceGetCount_v2", n.device_count))
          .and_then(find(library, "nvmlDeviceGetHandleByIndex_v2", n.device_by_index))
          .and_then(find(library, "nvmlDeviceGetPciInfo_v3", n.pci_info))
          .and_then(find(library, "nvmlDeviceGetUUID", n.uuid))
          .and_then(find(library, "nvmlDeviceGetName", n.name))
          .and_then(find(library, "nvmlDeviceGetCudaComputeCapability", n.compute_capability))
          .and_then(find(library, "nvmlDeviceGetNvLinkState", n.nvlink_state))
          .and_then(find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", n.nvlink_remote))
          .and_then(find(library, "nvmlDeviceGetNvLinkCapability", n.nvlink_capability));
  if (!found) return pass(found);
  find_optional(library, "nvmlDeviceGetNvLinkVersion", n.nvlink_version);
  find_optional(library, "nvmlDeviceGetNvLinkRemoteDeviceType", n.nvlink_remote_type);
  find_optional(library, "nvmlDeviceGetFieldValues", n.field_values);
  find_optional(library, "nvmlDeviceGetGpuFabricInfoV", n.fabric_info);
  find_optional(library, "nvmlDeviceGetP2PStatus", n.p2p_status);
  find_optional(library, "nvmlDeviceGetMemoryAffinity", n.memory_affinity);
  find_optional(library, "nvmlDeviceGetMigMode", n.mig_mode);
  find_optional(library, "nvmlDeviceGetMaxMigDeviceCount", n.mig_count);
  find_optional(library, "nvmlDeviceGetMigDeviceHandleByIndex", n.mig_by_index);
  return n;
}

}  // namespace

Result<Driver<Nvml>> open_nvml() {
  auto library = open_library("libnvidia-ml.so.1");
  if (!library) return pass(library);
  const auto nvml = find_functions(*library);
  if (!nvml) return pass(nvml, "libnvidia-ml.so.1");
  if (const NvmlReturn result = nvml->init(); result != kNvmlSuccess)
    return fail(Code::missing, "nvmlInit: {}", nvml->error_string(result));
  std::array<char, kNvmlTextBytes> version{};
  nvml->driver_version(version.data(), version.size());
  return Driver<Nvml>{*nvml, version.data(), std::move(*library)};
}

}  // namespace crosstie
