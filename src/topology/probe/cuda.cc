// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs as CUDA tells them, for containers that have no NVML.
#include <array>

#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

constexpr Provenance kDriver = Provenance::driver;

using Text = std::array<char, 256>;

Device describe(const Cuda& cuda, CudaDevice handle) {
  Device gpu{.kind = DeviceKind::gpu};
  Text text{};
  if (cuda.pci_bus_id(text.data(), text.size(), handle) == kCudaSuccess)
    if (const auto bdf = parse_bdf(text.data()); bdf && *bdf != Bdf{}) gpu.identity.bdf = *bdf;
  text = {};
  if (cuda.name(text.data(), text.size(), handle) == kCudaSuccess)
    gpu.model = known(std::string(text.data()), kDriver);
  // As NVML writes it. An instance of MIG is told by its name, as "NVIDIA H200 MIG 1g.18gb".
  const bool is_mig = gpu.model && gpu.model->value.find(" MIG ") != std::string::npos;
  if (CudaUuid uuid{}; cuda.uuid(&uuid, handle) == kCudaSuccess)
    gpu.identity.uuid = (is_mig ? "MIG-" : "GPU-") + uuid_text(uuid.bytes);
  int major = 0, minor = 0;
  if (cuda.attribute(&major, kCudaCapabilityMajor, handle) == kCudaSuccess &&
      cuda.attribute(&minor, kCudaCapabilityMinor, handle) == kCudaSuccess)
    gpu.compute_capability = known(10 * major + minor, kDriver);
  return gpu;
}

}  // namespace

void see_cuda_gpus(Builder& builder, const Cuda& cuda) {
  int count = 0;
  if (const CudaResult result = cuda.device_count(&count); result != kCudaSuccess)
    return builder.gap("CUDA",
                       fmt::format("does not list GPUs: error {}", static_cast<int>(result)));
  for (int i = 0; i < count; i++) {
    CudaDevice handle = 0;
    const CudaResult result = cuda.device(&handle, i);
    if (result == kCudaSuccess)
      builder.see(describe(cuda, handle));
    else
      builder.gap(fmt::format("CUDA device {}", i),
                  fmt::format("does not answer: error {}", static_cast<int>(result)));
  }
}

}  // namespace crosstie::probe
