// SPDX-License-Identifier: Apache-2.0
// A device of a host and what is known of it, each property with its provenance.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

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

// Whether a source told it: neither missing nor assumed.
template <class T>
bool is_told(const Property<T>& property) {
  return property && property->from != Provenance::assumed;
}

// By which a device is recognised in another sighting. No one of these suffices: GUIDs are
// shared by the ports of a card (on some machines by all cards), PCI addresses by partitions
// of a GPU, and indices mean nothing outside their source.
struct Identity {
  std::optional<Bdf> bdf{};
  std::string uuid{};
  std::optional<uint64_t> guid{};    // a port's
  std::optional<uint32_t> number{};  // in its host (NUMA node, package), NIC (port), GPU (part)
  std::string name{};                // the operating system's, as mlx5_0 or eth0
  bool operator==(const Identity&) const = default;
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

// An entry of a port's table of GIDs.
struct Gid {
  int index = 0;
  std::string address{};  // as an IPv6 address
  std::string type{};     // "IB", "RoCE v1", "RoCE v2"
  bool operator==(const Gid&) const = default;
};

// The multi-node NVLink fabric that a GPU is registered in.
struct FabricClique {
  std::string cluster{};  // a UUID
  uint32_t clique = 0;
  bool operator==(const FabricClique&) const = default;
};

inline constexpr uint32_t kNoDevice = UINT32_MAX;
// GUIDs below are no one's: NCCL's plugins number sockets, and devices of libfabric, so.
inline constexpr uint64_t kLeastGuid = uint64_t{1} << 40;

struct Device {
  DeviceKind kind = DeviceKind::pci_switch;
  uint32_t parent = kNoDevice;  // what contains it; none: the host itself. A GPU in a GPU is a
                                // partition of it (MIG, CPX) and shares its links, a NIC in a NIC
                                // a virtual function of it
  uint32_t host = 0;            // within an NVLink domain of several
  std::string label{};          // what people call it; unique in its Machine
  Identity identity{};

  Property<std::string> model{};
  Property<CpuModel> cpu{};  // numa, cpu
  Property<uint32_t> pci_class{};
  Property<PciIds> pci_ids{};
  Property<std::string> host_bridge{};  // of PCI, right beneath the CPU: domain and bus, "0000:16"
  Property<double> pcie_speed{};  // giga-transfers a second and lane that the link above it can do
  Property<int> pcie_lanes{};     // that the link above it can do
  Property<double> pcie_speed_now{};   // that it was trained to
  Property<int> pcie_lanes_now{};      // that it was trained to
  Property<bool> acs{};                // pci_switch: access control sends peers' traffic to the CPU
  Property<int> index{};               // gpu: NVML's; port: NCCL's
  Property<int> compute_capability{};  // gpu: 10 * major + minor
  Property<std::string> nvlink_version{};  // gpu: as its driver tells, "4.0"
  Property<FabricClique> fabric{};         // gpu
  Property<Bdf> physical_function{};       // nic: of which it is a virtual function
  Property<uint64_t> node_guid{};          // nic; some drivers give all cards of a host the same
  Property<uint64_t> sys_image_guid{};     // nic: of the whole card
  Property<int> bond_members{};            // nic: ports that a bond joins
  Property<std::string> link_layer{};      // port: "InfiniBand", "Ethernet"
  Property<bool> carrier{};                // port: its link is up
  Property<Bandwidth> line_rate{};         // port
  Property<Seconds> latency{};             // port
  Property<int> mtu{};                     // port: bytes of payload that it takes now
  Property<int> lid{};                     // port, InfiniBand
  Property<uint64_t> subnet_prefix{};      // port
  Property<std::vector<Gid>> gids{};       // port
  Property<int> rail{};                    // port: which of the fabric's rails it is on
  Property<bool> gpu_direct{};             // gpu, port: RDMA straight to and from GPU memory

  // What a source tells beyond that, in its own words: attributes ("net.maxconn") and whole
  // elements. Kept for who writes it again.
  std::map<std::string, std::string> attributes{};
  std::vector<std::string> elements{};
  bool operator==(const Device&) const = default;
};

// Whether such devices are PCI functions, all but virtual ones and those made of software.
inline bool on_pci(DeviceKind kind) {
  return kind == DeviceKind::pci_switch || kind == DeviceKind::gpu || kind == DeviceKind::nic;
}

// Whether a device is a part of what contains it: a partition or a virtual function.
inline bool is_part(const Device& device, const Device& parent) {
  return device.kind == parent.kind &&
         (device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic);
}

// Every property, once: what merges, compares, writes and reads them walks this table.
template <class T>
struct DeviceField {
  std::string_view name;   // as in JSON, where it tells the unit
  std::string_view words;  // for people
  Property<T> Device::*member;
};
template <class T>
DeviceField(std::string_view, std::string_view, Property<T> Device::*) -> DeviceField<T>;

inline constexpr std::tuple kDeviceFields{
    DeviceField{"model", "model", &Device::model},
    DeviceField{"cpu", "CPU", &Device::cpu},
    DeviceField{"pci_class", "PCI class", &Device::pci_class},
    DeviceField{"pci_ids", "PCI ids", &Device::pci_ids},
    DeviceField{"host_bridge", "PCI host bridge", &Device::host_bridge},
    DeviceField{"pcie_gigatransfers_per_second", "PCIe GT/s", &Device::pcie_speed},
    DeviceField{"pcie_lanes", "PCIe lanes", &Device::pcie_lanes},
    DeviceField{"pcie_gigatransfers_per_second_now", "PCIe GT/s now", &Device::pcie_speed_now},
    DeviceField{"pcie_lanes_now", "PCIe lanes now", &Device::pcie_lanes_now},
    DeviceField{"acs", "ACS", &Device::acs},
    DeviceField{"index", "index", &Device::index},
    DeviceField{"compute_capability", "compute capability", &Device::compute_capability},
    DeviceField{"nvlink_version", "NVLink version", &Device::nvlink_version},
    DeviceField{"fabric", "NVLink fabric", &Device::fabric},
    DeviceField{"physical_function", "physical function", &Device::physical_function},
    DeviceField{"node_guid", "node GUID", &Device::node_guid},
    DeviceField{"sys_image_guid", "system image GUID", &Device::sys_image_guid},
    DeviceField{"bond_members", "members of the bond", &Device::bond_members},
    DeviceField{"link_layer", "link layer", &Device::link_layer},
    DeviceField{"carrier", "carrier", &Device::carrier},
    DeviceField{"line_rate_bytes_per_second", "line rate", &Device::line_rate},
    DeviceField{"latency_seconds", "latency in seconds", &Device::latency},
    DeviceField{"mtu_bytes", "MTU", &Device::mtu},
    DeviceField{"lid", "LID", &Device::lid},
    DeviceField{"subnet_prefix", "subnet prefix", &Device::subnet_prefix},
    DeviceField{"gids", "GIDs", &Device::gids},
    DeviceField{"rail", "rail", &Device::rail},
    DeviceField{"gpu_direct", "GPUDirect RDMA", &Device::gpu_direct},
};

template <class Do>
void for_each_field(Do&& act) {
  std::apply([&](const auto&... field) { (act(field), ...); }, kDeviceFields);
}

template <class T>
Property<T> known(T value, Provenance from) {
  return Known<T>{std::move(value), from};
}

}  // namespace crosstie
