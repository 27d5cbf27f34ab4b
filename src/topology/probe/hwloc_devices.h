// SPDX-License-Identifier: Apache-2.0
// From what hwloc tells to sightings: CPUs, and the GPUs, NICs and switches on PCI. Shared by the
// live probe, which asks sysfs and the drivers for the rest, and by files of hwloc.
#pragma once
#include <span>

#include "topology/builder.h"
#include "topology/probe/bitmap.h"
#include "topology/probe/hwloc_tree.h"

namespace crosstie::probe {

inline constexpr uint16_t kNvidia = 0x10de;  // vendor on PCI

// What is known beside hwloc.
struct HwlocAside {
  virtual ~HwlocAside() = default;
  // Sets the link of a function, or of a switch, to the port above it (null: none is known).
  virtual void set_pcie(Device& device, const HwlocObject& function, const HwlocObject* port) = 0;
  // Of which function this one is a virtual one, for sure. None: it is none, or nobody told.
  virtual std::optional<Bdf> physical_function(const Bdf& function) = 0;
  // How what hwloc tells is known.
  virtual Provenance provenance() = 0;
};

class HwlocDevices {
 public:
  // All must outlive this.
  HwlocDevices(const HwlocTree& tree, HwlocAside& aside, Builder& builder);

  void see();

  // In the Builder, of an object: a package's first NUMA node, a function's device; else none.
  uint32_t device(uint32_t object) const { return devices_[object]; }
  // The function or other object that a device of the operating system is part of.
  uint32_t function_of(uint32_t os_device) const;
  // Whether the ports of the function are those of another, of which it is a virtual one.
  bool shares_ports(uint32_t function) const;

 private:
  struct Virtual {
    uint32_t function;
    std::optional<Bdf> physical;
    std::string why;  // how it is known to be one; empty: it was told
  };

  void see_cpus();
  Bitmap cpus_of(uint32_t object) const;
  void see_only_node();
  struct Package;
  void see_node(uint32_t object, std::span<const Package> packages);
  uint32_t see_package(uint32_t node);
  Property<CpuModel> cpu_model(const HwlocObject& package) const;
  void see_pci();
  Device describe(uint32_t object, DeviceKind kind, uint32_t parent) const;
  void see_function(uint32_t object, Device described);
  std::string host_bridge_of(uint32_t object) const;
  const HwlocObject* port_above(uint32_t object) const;
  void see_virtual(const Virtual& function);
  std::optional<Virtual> as_virtual(uint32_t object) const;
  void see_gpu(uint32_t object);
  uint32_t gpu_of_virtual(uint32_t object) const;
  uint32_t at(const Bdf& bdf) const;
  uint32_t physical_beside(uint32_t object) const;
  uint32_t container_of(uint32_t object);
  uint32_t switch_of(uint32_t bridge);
  uint32_t numa_of(uint32_t object);
  uint32_t only_numa_of(uint32_t object) const;
  void count_levels();
  bool has_os_device(uint32_t function) const { return os_devices_[function] > 0; }

  const HwlocTree& tree_;
  HwlocAside& aside_;
  Builder& builder_;
  std::map<unsigned, uint32_t> numa_;  // by the system's number
  std::vector<uint32_t> devices_;      // by object
  std::vector<int> levels_;            // by object: PCI bridges from the CPU down to it, itself too
  std::vector<int> os_devices_;        // by object: how many there are of it
  std::map<Bdf, uint32_t> functions_;  // objects
  std::map<uint32_t, uint32_t> physical_;  // of virtual functions, both objects
  std::map<uint32_t, uint32_t> near_;      // by object that was asked for: its only NUMA node
};

}  // namespace crosstie::probe
