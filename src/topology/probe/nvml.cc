// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs and their NVLinks as NVML tells them.
#include <array>

#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

constexpr Provenance kDriver = Provenance::driver;

using Text = std::array<char, kNvmlTextBytes>;

Bdf to_bdf(const NvmlPciInfo& info) {
  return {info.domain, static_cast<uint8_t>(info.bus), static_cast<uint8_t>(info.device), 0};
}

Device describe(const Nvml& nvml, NvmlDevice handle, unsigned index, const NvmlPciInfo& pci) {
  Device gpu{.kind = DeviceKind::gpu};
  gpu.label = fmt::format("gpu{}", index);
  gpu.identity.bdf = to_bdf(pci);
  Text text{};
  if (nvml.uuid(handle, text.data(), text.size()) == kNvmlSuccess) gpu.identity.uuid = text.data();
  text = {};
  if (nvml.name(handle, text.data(), text.size()) == kNvmlSuccess)
    gpu.model = known(std::string(text.data()), kDriver);
  int major = 0, minor = 0;
  if (nvml.compute_capability(handle, &major, &minor) == kNvmlSuccess)
    gpu.compute_capability = known(10 * major + minor, kDriver);
  return gpu;
}

// GPUs answer for links that they do not have; only those that are up count. A remote end that
// is no device of this host is taken for an NVSwitch, as containers and VMs hide those.
void see_nvlinks(Builder& builder, const Nvml& nvml, NvmlDevice handle, uint32_t gpu) {
  std::map<Bdf, uint32_t> counts;
  for (unsigned link = 0; link < kNvmlMostLinks; link++) {
    NvmlEnable state = kNvmlDisabled;
    if (nvml.nvlink_state(handle, link, &state) != kNvmlSuccess || state != kNvmlEnabled) continue;
    NvmlPciInfo remote{};
    const NvmlReturn result = nvml.nvlink_remote(handle, link, &remote);
    if (result == kNvmlSuccess)
      counts[to_bdf(remote)]++;
    else
      builder.gap(gpu, fmt::format("an NVLink with an unknown end: {}", nvml.error_string(result)),
                  "no such link");
  }
  for (const auto& [remote, count] : counts)
    builder.link_to_address(gpu, remote, DeviceKind::nvswitch, {LinkType::nvlink, count});
}

void see_gpu(Builder& builder, const Nvml& nvml, unsigned index) {
  NvmlDevice handle = nullptr;
  NvmlPciInfo pci{};
  NvmlReturn result = nvml.device_by_index(index, &handle);
  if (result == kNvmlSuccess) result = nvml.pci_info(handle, &pci);
  if (result != kNvmlSuccess)
    return builder.gap(fmt::format("NVML device {}", index),
                       fmt::format("does not answer: {}", nvml.error_string(result)));
  const uint32_t gpu = builder.see(describe(nvml, handle, index, pci));
  see_nvlinks(builder, nvml, handle, gpu);
}

}  // namespace

void see_nvidia_gpus(Builder& builder, const Nvml& nvml) {
  unsigned count = 0;
  const NvmlReturn result = nvml.device_count(&count);
  if (result != kNvmlSuccess)
    return builder.gap("NVML", fmt::format("does not list GPUs: {}", nvml.error_string(result)));
  for (unsigned i = 0; i < count; i++) see_gpu(builder, nvml, i);
}

}  // namespace crosstie::probe
