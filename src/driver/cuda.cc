// SPDX-License-Identifier: Apache-2.0
#include "driver/cuda.h"

namespace crosstie {

Result<Driver<Cuda>> open_cuda() {
  auto library = open_library("libcuda.so.1");
  if (!library) return pass(library);
  Cuda cuda;
  const Status found = find(*library, "cuInit", cuda.init)()
                           .and_then(find(*library, "cuDriverGetVersion", cuda.driver_version))
                           .and_then(find(*library, "cuDeviceGetCount", cuda.device_count))
                           .and_then(find(*library, "cuDeviceGet", cuda.device))
                           .and_then(find(*library, "cuDeviceGetPCIBusId", cuda.pci_bus_id))
                           .and_then(find(*library, "cuDeviceGetUuid", cuda.uuid))
                           .and_then(find(*library, "cuDeviceGetName", cuda.name))
                           .and_then(find(*library, "cuDeviceGetAttribute", cuda.attribute));
  if (!found) return pass(found, "libcuda.so.1");
  // Since CUDA 11.4; it alone tells the UUID of a MIG instance.
  decltype(cuda.uuid) newer = nullptr;
  find_optional(*library, "cuDeviceGetUuid_v2", newer);
  if (newer != nullptr) cuda.uuid = newer;
  if (const CudaResult result = cuda.init(0); result != kCudaSuccess)
    return fail(Code::missing, "cuInit: CUDA error {}", static_cast<int>(result));
  int version = 0;  // 1000 * major + 10 * minor
  cuda.driver_version(&version);
  return Driver<Cuda>{cuda, fmt::format("{}.{}", version / 1000, version % 1000 / 10),
                      std::move(*library)};
}

}  // namespace crosstie
