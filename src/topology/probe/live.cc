// SPDX-License-Identifier: Apache-2.0
// CPUs, NUMA nodes and PCI as hwloc tells them; link speeds from sysfs; then the drivers.
#include "topology/probe/live.h"

#include <hwloc.h>

#include <algorithm>

#include "topology/probe/seeing.h"

namespace crosstie {
namespace {

using probe::NicNames;
using probe::read_number;

constexpr Provenance kDriver = Provenance::driver;

struct HwlocTraits {
  using type = hwloc_topology_t;
  static constexpr type none = nullptr;
  static void close(type topology) { hwloc_topology_destroy(topology); }
};
using Hwloc = Handle<HwlocTraits>;

// We ask the drivers ourselves; hwloc's own plugins for them take long to start (OpenCL, X11)
// or would open a second NVML. "pci" (libpciaccess) leaks and adds names only: without it hwloc
// reads PCI from sysfs.
void leave_out_plugins(hwloc_topology_t topology) {
  for (const char* plugin : {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl", "pci"})
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
}

Result<Hwloc> load_hwloc(const std::string& xml) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail_errno(Code::io, "hwloc_topology_init");
  Hwloc topology(raw);
  leave_out_plugins(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // Devices sit by NUMA nodes that a container may not use.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (!xml.empty() &&
      hwloc_topology_set_xmlbuffer(raw, xml.data(), static_cast<int>(xml.size()) + 1) != 0)
    return fail(Code::invalid, "hwloc does not read the recorded topology");
  if (hwloc_topology_load(raw) != 0) return fail_errno(Code::io, "hwloc_topology_load");
  return topology;
}

std::string info(hwloc_obj_t object, const char* key) {
  const char* const value = hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? std::string() : value;
}

Bdf bdf_of(hwloc_obj_t object) {
  const auto& pci = object->attr->pcidev;
  return {pci.domain, pci.bus, pci.dev, pci.func};
}

bool is_pci_bridge(hwloc_obj_t object) {
  return object != nullptr && object->type == HWLOC_OBJ_BRIDGE &&
         object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

// Plain display adapters (a server's BMC, a VM's console) have the class of GPUs too: only those
// of makers of compute GPUs count. AMD's may come as "display, other" or as accelerators.
bool is_gpu(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  constexpr std::array<uint16_t, 3> kMakers = {0x10de, 0x1002, 0x8086};
  const int base = pci.class_id >> 8;
  return (base == 0x03 || base == 0x12) && std::ranges::count(kMakers, pci.vendor_id) > 0;
}

class Probe {
 public:
  Probe(const LiveSources& sources, hwloc_topology_t topology)
      : drivers_(sources.drivers),
        hcas_(sources.hcas),
        topology_(topology),
        builder_(sources.host, "live") {}

  Result<Machine> run() {
    see_cpus();
    see_pci();
    see_ports();
    see_gpus();
    probe::see_pci_functions(builder_, drivers_.sysfs);
    return std::move(builder_).build();
  }

 private:
  void see_cpus();
  uint32_t see_package(hwloc_obj_t numa);
  Property<CpuModel> cpu_model(hwloc_obj_t package) const;
  void see_pci();
  void see_function(hwloc_obj_t function);
  uint32_t container_of(hwloc_obj_t function);
  uint32_t numa_of(hwloc_obj_t function) const;
  void set_pcie(Device& device, hwloc_obj_t function) const;
  void note_names(hwloc_obj_t object, uint32_t nic);
  void see_ports();
  void see_gpus();

  const Drivers& drivers_;
  const std::string& hcas_;
  hwloc_topology_t topology_;
  Builder builder_;
  std::map<unsigned, uint32_t> numa_;  // by the system's number
  NicNames names_;
};

Property<CpuModel> Probe::cpu_model(hwloc_obj_t package) const {
  const auto number = [&](const char* key) { return std::atoi(info(package, key).c_str()); };
  CpuModel cpu{info(hwloc_get_root_obj(topology_), "Architecture"), info(package, "CPUVendor"),
               number("CPUFamilyNumber"), number("CPUModelNumber")};
  if (cpu.arch == "aarch64") cpu.arch = "arm64";  // NCCL's name
  return known(std::move(cpu), kDriver);
}

// The package that holds all of a NUMA node's CPUs.
uint32_t Probe::see_package(hwloc_obj_t numa) {
  const hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, numa);
  if (object == nullptr) return kNoDevice;
  Device package{.kind = DeviceKind::cpu};
  package.identity.number = object->os_index;
  package.cpu = cpu_model(object);
  if (const auto model = info(object, "CPUModel"); !model.empty())
    package.model = known(model, kDriver);
  return builder_.see(package);
}

void Probe::see_cpus() {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    // Memory alone (CXL, the memory of a Grace Hopper GPU) is no place that devices sit by.
    if (hwloc_bitmap_iszero(object->cpuset)) continue;
    Device node{.kind = DeviceKind::numa, .parent = see_package(object)};
    node.identity.number = object->os_index;
    if (node.parent != kNoDevice) node.cpu = builder_.device(node.parent).cpu;
    numa_[object->os_index] = builder_.see(node);
  }
}

void Probe::see_pci() {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_pcidev(topology_, object)) != nullptr) see_function(object);
}

void Probe::see_function(hwloc_obj_t function) {
  const auto& pci = function->attr->pcidev;
  const bool nic = pci.class_id >> 8 == 0x02;
  if (!nic && !is_gpu(pci)) return;
  Device d{.kind = nic ? DeviceKind::nic : DeviceKind::gpu, .parent = container_of(function)};
  d.identity.bdf = bdf_of(function);
  set_pcie(d, function);
  const uint32_t index = builder_.see(d);
  if (nic) note_names(function, index);
}

// A switch is two layers of bridges: the downstream port that a function hangs on, and the
// upstream port, which stands for the switch. Root ports are the other single layer, part of
// the CPU. (NCCL climbs sysfs in the same two steps.)
uint32_t Probe::container_of(hwloc_obj_t function) {
  const hwloc_obj_t port = function->parent;
  if (!is_pci_bridge(port) || !is_pci_bridge(port->parent)) return numa_of(function);
  Device upstream{.kind = DeviceKind::pci_switch, .parent = container_of(port->parent)};
  upstream.identity.bdf = bdf_of(port->parent);
  set_pcie(upstream, port->parent);
  return builder_.see(upstream);
}

uint32_t Probe::numa_of(hwloc_obj_t function) const {
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology_, function);
  if (near == nullptr || near->nodeset == nullptr) return kNoDevice;
  uint32_t found = kNoDevice;
  for (const auto& [number, index] : numa_) {
    if (!hwloc_bitmap_isset(near->nodeset, number)) continue;
    if (found != kNoDevice) return kNoDevice;  // by several: the firmware did not say which
    found = index;
  }
  return found;
}

// The most that both ends can do. The present speed would mislead: idle GPUs slow their links.
void Probe::set_pcie(Device& d, hwloc_obj_t function) const {
  double speed = 0, lanes = 0;
  for (hwloc_obj_t end : {function, function->parent}) {
    if (end != function && !is_pci_bridge(end)) continue;
    const auto folder = drivers_.sysfs / "bus" / "pci" / "devices" / to_text(bdf_of(end));
    const double its_speed = read_number(folder / "max_link_speed");
    const double its_lanes = read_number(folder / "max_link_width");
    if (its_speed > 0) speed = speed > 0 ? std::min(speed, its_speed) : its_speed;
    if (its_lanes > 0) lanes = lanes > 0 ? std::min(lanes, its_lanes) : its_lanes;
  }
  if (speed > 0) d.pcie_speed = known(speed, kDriver);
  if (lanes > 0 && lanes <= 32)
    d.pcie_lanes = known(static_cast<int>(lanes), kDriver);  // 255: unknown
}

void Probe::note_names(hwloc_obj_t object, uint32_t nic) {
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
    if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) names_.net[child->name] = nic;
    if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) names_.rdma[child->name] = nic;
    note_names(child, nic);
  }
}

// An RDMA port and the network device over it are one port: the former is the one told of.
void Probe::see_ports() {
  std::set<uint32_t> seen;
  if (drivers_.verbs)
    seen =
        probe::see_rdma_ports(builder_, drivers_.verbs->functions, drivers_.sysfs, names_, hcas_);
  else
    builder_.gap("verbs", drivers_.verbs.error().text, "no RDMA");
  for (const auto& [name, nic] : names_.net)
    if (!seen.contains(nic)) probe::see_net_port(builder_, drivers_.sysfs, name, nic);
}

void Probe::see_gpus() {
  if (drivers_.nvml) return probe::see_nvidia_gpus(builder_, drivers_.nvml->functions);
  builder_.gap("NVML", drivers_.nvml.error().text, "no NVLinks");
  if (drivers_.cuda) probe::see_cuda_gpus(builder_, drivers_.cuda->functions);
}

}  // namespace

Result<Machine> probe_live(const LiveSources& sources) {
  const auto topology = load_hwloc(sources.hwloc_xml);
  if (!topology) return pass(topology);
  return Probe(sources, topology->get()).run();
}

}  // namespace crosstie
