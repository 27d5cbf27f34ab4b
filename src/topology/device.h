// SPDX-License-Identifier: Apache-2.0
// A device of a host and what is known of it, each property with its provenance.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/identity.h"
#include "base/units.h"
#include "base/words.h"

namespace crosstie {

enum class DeviceKind : uint8_t { cpu, numa, pci_switch, gpu, nic, port, nvswitch };
template <>
struct Names<DeviceKind> {
  static constexpr std::array<std::string_view, 7> all = {"cpu", "numa", "pci-switch", "gpu",
                                                          "nic", "port", "nvswitch"};
};

// How we know; a later one outweighs an earlier one.
enum class Provenance : uint8_t { assumed, file, driver, measured };
template <>
struct Names<Provenance> {
  static constexpr std::array<std::string_view, 4> all = {"assumed", "file", "driver", "measured"};
};

template <class T>
struct Known {
  T value{};
  Provenance from = Provenance::assumed;
  bool operator==(const Known&) const = default;
};
template <class T>
using Property = std::optional<Known<T>>;

// By which a device is recognised in another sighting. No one of these suffices: GUIDs are
// shared by the ports of a card (on some machines by all cards), PCI addresses by partitions
// of a GPU, and indices mean nothing outside their source.
struct Identity {
  std::optional<Bdf> bdf{};
  std::string uuid{};
  std::optional<uint64_t> guid{};    // a port's
  std::optional<uint32_t> number{};  // of a NUMA node or package in its host, of a port in its NIC
  std::string name{};                // the operating system's, as mlx5_0 or eth0
};

// What CPUID tells of an x86 CPU; of others the vendor at most.
struct CpuModel {
  std::string arch{};    // x86_64, arm64, ppc64
  std::string vendor{};  // GenuineIntel, AuthenticAMD, …
  int family = 0, model = 0;
  bool operator==(const CpuModel&) const = default;
};

// What a PCI function says it is.
struct PciIds {
  uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  bool operator==(const PciIds&) const = default;
};

inline constexpr uint32_t kNoDevice = UINT32_MAX;

struct Device {
  DeviceKind kind = DeviceKind::pci_switch;
  uint32_t parent = kNoDevice;  // what contains it; none: the host itself
  std::string label{};          // what people call it; unique in its Machine
  Identity identity{};

  Property<std::string> model{};
  Property<CpuModel> cpu{};  // numa, cpu
  Property<PciIds> pci_ids{};
  Property<double> pcie_speed{};       // giga-transfers a second and lane, of the link above it
  Property<int> pcie_lanes{};          // of the link above it
  Property<int> index{};               // gpu: NVML's; port: NCCL's
  Property<int> compute_capability{};  // gpu: 10 * major + minor
  Property<Bandwidth> line_rate{};     // port
  Property<Seconds> latency{};         // port
  Property<bool> gpu_direct{};         // gpu, port: RDMA straight to and from GPU memory
};

template <class T>
Property<T> known(T value, Provenance from) {
  return Known<T>{std::move(value), from};
}

}  // namespace crosstie
