// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/hwloc_devices.h"

#include <algorithm>
#include <charconv>

#include "base/printable.h"

namespace crosstie::probe {
namespace {

// As hwloc writes them: "0x00000003,,0xff". Empty where there is none.
Bitmap bitmap(const std::string& text) {
  Bitmap out(hwloc_bitmap_alloc());
  hwloc_bitmap_sscanf(out.get(), text.c_str());
  return out;
}

// CPUID's names come padded with blanks, which hwloc 1 cut off.
std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// NCCL reads no more of an attribute, and asks the kernel for what is not in its file.
constexpr size_t kMostAffinity = 253;

// As the kernel writes sets of CPUs, and NCCL after it: "00000000,0000ffff".
void set_affinity(Device& node, const Bitmap& cpus) {
  std::string text;
  for (int word = hwloc_bitmap_last(cpus.get()) / 32; word >= 0; word--) {
    const uint64_t two = hwloc_bitmap_to_ith_ulong(cpus.get(), static_cast<unsigned>(word / 2));
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",",
                        static_cast<uint32_t>(two >> (word % 2 * 32)));
  }
  if (text.size() <= kMostAffinity) node.attributes["cpu.affinity"] = std::move(text);
}

std::string arch(const std::string& name) {  // by NCCL's name
  if (name == "aarch64") return "arm64";
  return name.starts_with("ppc64") ? "ppc64" : name;
}

constexpr uint16_t kAmd = 0x1002, kIntel = 0x8086, kMellanox = 0x15b3, kCisco = 0x1137,
                   kBroadcom = 0x14e4;

struct Model {
  uint16_t vendor, device;
  bool operator==(const Model&) const = default;
};

// Display adapters of servers' consoles, though AMD's: ES1000, RN50.
constexpr std::array<Model, 2> kConsoles = {{{kAmd, 0x515e}, {kAmd, 0x5969}}};

// Models of virtual functions (as the public list of PCI identifiers names them): ConnectX-3 to
// -7, Intel's of 1 to 100 Gb/s, Cisco's SR-IOV and userspace NICs, Broadcom's.
constexpr std::array<Model, 23> kVirtualFunctions = {{
    {kMellanox, 0x1004}, {kMellanox, 0x1012}, {kMellanox, 0x1014}, {kMellanox, 0x1016},
    {kMellanox, 0x1018}, {kMellanox, 0x101a}, {kMellanox, 0x101c}, {kMellanox, 0x101e},
    {kIntel, 0x10ca},    {kIntel, 0x10ed},    {kIntel, 0x1515},    {kIntel, 0x1520},
    {kIntel, 0x1565},    {kIntel, 0x154c},    {kIntel, 0x37cd},    {kIntel, 0x1889},
    {kCisco, 0x0071},    {kCisco, 0x00cf},    {kBroadcom, 0x16dc}, {kBroadcom, 0x1606},
    {kBroadcom, 0x1609}, {kBroadcom, 0x1806}, {kBroadcom, 0x1807},
}};

bool is_one_of(const PciIds& ids, std::span<const Model> models) {
  return std::ranges::count(models, Model{ids.vendor, ids.device}) > 0;
}

// Intel's graphics within the CPU are a VGA controller there.
bool is_integrated(const HwlocObject& function) {
  return function.ids.vendor == kIntel && function.pci_class == 0x0300 &&
         function.bdf == Bdf{0, 0, 2, 0};
}

// Plain display adapters (a server's BMC, a VM's console) have the class of GPUs too: only those
// of makers of compute GPUs count. AMD's may come as "display, other" or as accelerators; Intel's
// accelerators are NPUs and the like.
bool is_gpu(const HwlocObject& function) {
  const int base = function.pci_class >> 8;
  const uint16_t vendor = function.ids.vendor;
  const bool displays = base == 0x03 && (vendor == kNvidia || vendor == kAmd || vendor == kIntel);
  const bool accelerates = base == 0x12 && (vendor == kNvidia || vendor == kAmd);
  return (displays || accelerates) && !is_one_of(function.ids, kConsoles) &&
         !is_integrated(function);
}

// InfiniBand cards of before 2010 are serial buses (0x0c06).
bool is_nic(const HwlocObject& function) {
  return function.pci_class >> 8 == 0x02 || function.pci_class == 0x0c06;
}

}  // namespace

struct HwlocDevices::Package {
  uint32_t object;
  Bitmap cpus;
};

HwlocDevices::HwlocDevices(const HwlocTree& tree, HwlocAside& aside, Builder& builder)
    : tree_(tree),
      aside_(aside),
      builder_(builder),
      devices_(tree.objects.size(), kNoDevice),
      levels_(tree.objects.size()),
      os_devices_(tree.objects.size()) {
  count_levels();
}

void HwlocDevices::count_levels() {
  for (uint32_t i = 0; i < tree_.objects.size(); i++) {
    const HwlocObject& object = tree_.objects[i];
    const int above = object.parent == kNoDevice ? 0 : levels_[object.parent];
    levels_[i] = object.type == HwlocType::bridge ? above + 1 : above;
    if (object.type == HwlocType::pci) functions_.emplace(object.bdf, i);
    if (object.type != HwlocType::os) continue;
    if (object.network || object.rdma || object.gpu) os_devices_[function_of(i)]++;
  }
}

uint32_t HwlocDevices::function_of(uint32_t os_device) const {
  uint32_t i = os_device;
  while (tree_.objects[i].type == HwlocType::os && tree_.objects[i].parent != kNoDevice)
    i = tree_.objects[i].parent;
  return i;
}

void HwlocDevices::see() {
  for (const Gap& gap : tree_.gaps) builder_.gap(gap.device, gap.missing, gap.assumed);
  see_cpus();
  see_pci();
}

void HwlocDevices::see_cpus() {
  std::vector<Package> packages;
  for (uint32_t i = 0; i < tree_.objects.size(); i++)
    if (tree_.objects[i].type == HwlocType::package) packages.push_back({i, cpus_of(i)});
  for (uint32_t i = 0; i < tree_.objects.size(); i++)
    if (tree_.objects[i].type == HwlocType::numa && tree_.objects[i].number) see_node(i, packages);
  if (numa_.empty() && tree_.version == 1) see_only_node();
}

// Of what cannot be read, none, and a gap.
Bitmap HwlocDevices::cpus_of(uint32_t object) const {
  const HwlocObject& of = tree_.objects[object];
  Bitmap cpus(hwloc_bitmap_alloc());
  if (of.cpuset.empty() || hwloc_bitmap_sscanf(cpus.get(), of.cpuset.c_str()) == 0) return cpus;
  hwloc_bitmap_zero(cpus.get());
  const std::string_view type = of.type == HwlocType::numa      ? "NUMANode"
                                : of.type == HwlocType::package ? "Package"
                                                                : "Machine";
  builder_.gap(of.number ? fmt::format("{} {}", type, *of.number) : std::string(type),
               fmt::format("its cpuset \"{}\" cannot be read", printable(of.cpuset)),
               "it has no CPUs");
  return cpus;
}

// hwloc 1 does not tell of the NUMA node of a machine that has but one.
void HwlocDevices::see_only_node() {
  Device node{.kind = DeviceKind::numa};
  node.identity.number = 0;
  uint32_t packages = 0;
  for (uint32_t i = 0; i < tree_.objects.size(); i++) {
    if (tree_.objects[i].type != HwlocType::package) continue;
    packages++;
    node.cpu = cpu_model(tree_.objects[i]);
    node.parent = see_package(i);
  }
  if (packages != 1) node.parent = kNoDevice;
  if (const Bitmap cpus = cpus_of(0); hwloc_bitmap_last(cpus.get()) >= 0) set_affinity(node, cpus);
  numa_[0] = builder_.see(node);
}

void HwlocDevices::see_node(uint32_t object, std::span<const Package> all) {
  const HwlocObject& numa = tree_.objects[object];
  const Bitmap cpus = cpus_of(object);
  // Memory alone (CXL, the memory of a Grace Hopper GPU) is no place that devices sit by.
  if (hwloc_bitmap_iszero(cpus.get())) return;
  Device node{.kind = DeviceKind::numa};
  node.identity.number = numa.number;
  std::vector<uint32_t> packages;
  bool within = false;
  for (const Package& package : all) {
    if (!hwloc_bitmap_intersects(cpus.get(), package.cpus.get())) continue;
    packages.push_back(package.object);
    within = hwloc_bitmap_isincluded(cpus.get(), package.cpus.get());
  }
  if (packages.size() == 1 && within) node.parent = see_package(packages[0]);
  if (!packages.empty()) node.cpu = cpu_model(tree_.objects[packages[0]]);
  if (hwloc_bitmap_last(cpus.get()) >= 0) set_affinity(node, cpus);
  const uint32_t index = builder_.see(node);
  numa_.emplace(*numa.number, index);
  devices_[object] = index;
  for (const uint32_t package : packages)
    if (devices_[package] == kNoDevice) devices_[package] = index;
  if (!packages.empty() && node.parent == kNoDevice)
    builder_.gap(index, "its CPUs are not those of one package", "it is in none");
}

uint32_t HwlocDevices::see_package(uint32_t object) {
  const HwlocObject& package = tree_.objects[object];
  Device cpu{.kind = DeviceKind::cpu};
  cpu.identity.number = package.number;
  cpu.cpu = cpu_model(package);
  if (const auto model = trimmed(package.info("CPUModel")); !model.empty())
    cpu.model = known(model, aside_.provenance());
  return builder_.see(cpu);
}

Property<CpuModel> HwlocDevices::cpu_model(const HwlocObject& package) const {
  // Of a file, whatever it says; what is no number is zero, not known.
  const auto number = [&](const char* key) {
    const std::string text = package.info(key);
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return std::max(value, 0);
  };
  return known(CpuModel{arch(tree_.info("Architecture")), package.info("CPUVendor"),
                        number("CPUFamilyNumber"), number("CPUModelNumber")},
               aside_.provenance());
}

void HwlocDevices::see_pci() {
  std::vector<Virtual> virtuals;
  for (uint32_t i = 0; i < tree_.objects.size(); i++) {
    const HwlocObject& function = tree_.objects[i];
    if (function.type != HwlocType::pci) continue;
    if (is_gpu(function)) see_gpu(i);
    if (!is_nic(function)) continue;
    if (auto as = as_virtual(i))
      virtuals.push_back(std::move(*as));
    else
      see_function(i, describe(i, DeviceKind::nic, container_of(i)));
  }
  for (const Virtual& function : virtuals) see_virtual(function);
}

// Virtual functions of a GPU are for virtual machines: in these they are GPUs, beside it none.
void HwlocDevices::see_gpu(uint32_t object) {
  const uint32_t physical = gpu_of_virtual(object);
  if (physical == kNoDevice)
    return see_function(object, describe(object, DeviceKind::gpu, container_of(object)));
  builder_.gap(to_text(tree_.objects[object].bdf),
               fmt::format("a virtual function of the GPU {}, for a virtual machine",
                           to_text(tree_.objects[physical].bdf)),
               "no GPU");
}

// Drivers tell. In a file it is a GPU on the bus of one of the same maker that is the bus's first
// function, as physical ones are.
uint32_t HwlocDevices::gpu_of_virtual(uint32_t object) const {
  const HwlocObject& function = tree_.objects[object];
  auto of = aside_.physical_function(function.bdf);
  if (!of && aside_.provenance() != Provenance::driver)
    of = Bdf{function.bdf.domain, function.bdf.bus, 0, 0};
  const uint32_t physical = of ? at(*of) : kNoDevice;
  const bool is_its = physical != kNoDevice && physical != object &&
                      is_gpu(tree_.objects[physical]) &&
                      tree_.objects[physical].ids.vendor == function.ids.vendor;
  return is_its ? physical : kNoDevice;
}

Device HwlocDevices::describe(uint32_t object, DeviceKind kind, uint32_t parent) const {
  const HwlocObject& function = tree_.objects[object];
  Device d{.kind = kind, .parent = parent};
  d.identity.bdf = function.bdf;
  d.pci_class = known(static_cast<uint32_t>(function.pci_class) << 8, aside_.provenance());
  d.pci_ids = known(function.ids, aside_.provenance());
  const bool is_top = parent == kNoDevice || builder_.device(parent).kind == DeviceKind::numa;
  if (const std::string bridge = host_bridge_of(object); is_top && !bridge.empty())
    d.host_bridge = known(bridge, aside_.provenance());
  return d;
}

std::string HwlocDevices::host_bridge_of(uint32_t object) const {
  while (object != kNoDevice && tree_.objects[object].type != HwlocType::host_bridge)
    object = tree_.objects[object].parent;
  return object == kNoDevice ? std::string() : tree_.objects[object].root_bus;
}

void HwlocDevices::see_function(uint32_t object, Device d) {
  const HwlocObject& function = tree_.objects[object];
  aside_.set_pcie(d, function, port_above(object));
  devices_[object] = builder_.see(d);
  if (function.type == HwlocType::pci && levels_[object] > 0 && levels_[object] % 2 == 0)
    builder_.gap(devices_[object],
                 "an odd bridge is above it; NCCL counts bridges in pairs, and takes it to be "
                 "farther than it is",
                 "the bridge is part of the device");
}

const HwlocObject* HwlocDevices::port_above(uint32_t object) const {
  const uint32_t above = tree_.objects[object].parent;
  const bool is_port = above != kNoDevice && tree_.objects[above].type == HwlocType::bridge;
  return is_port ? &tree_.objects[above] : nullptr;
}

// A virtual function is a part of the card's: it shares its link and its port. Where the card's is
// out of sight, as in virtual machines, it is a NIC like others.
void HwlocDevices::see_virtual(const Virtual& v) {
  const uint32_t physical = v.physical ? at(*v.physical) : kNoDevice;
  const bool alone = physical == kNoDevice || devices_[physical] == kNoDevice;
  Device d =
      describe(v.function, DeviceKind::nic, alone ? container_of(v.function) : devices_[physical]);
  if (v.physical)
    d.physical_function =
        known(*v.physical, v.why.empty() ? Provenance::driver : Provenance::assumed);
  if (alone) {
    see_function(v.function, d);
  } else {
    devices_[v.function] = builder_.see(d);
    physical_[v.function] = physical;
  }
  if (!v.why.empty())
    builder_.gap(devices_[v.function], v.why,
                 v.physical ? "a virtual function of " + to_text(*v.physical) : "a NIC of its own");
}

bool HwlocDevices::shares_ports(uint32_t function) const {
  const auto physical = physical_.find(function);
  return physical != physical_.end() && has_os_device(physical->second);
}

uint32_t HwlocDevices::at(const Bdf& bdf) const {
  const auto found = functions_.find(bdf);
  return found == functions_.end() ? kNoDevice : found->second;
}

// Drivers tell. In a file of hwloc a function's model gives it away, or that it is unused beside
// one of another model on the same card.
std::optional<HwlocDevices::Virtual> HwlocDevices::as_virtual(uint32_t object) const {
  const HwlocObject& function = tree_.objects[object];
  if (const auto told = aside_.physical_function(function.bdf)) return Virtual{object, told, {}};
  if (aside_.provenance() == Provenance::driver) return std::nullopt;
  const uint32_t beside = physical_beside(object);
  const auto physical =
      beside == kNoDevice ? std::nullopt : std::optional(tree_.objects[beside].bdf);
  if (is_one_of(function.ids, kVirtualFunctions))
    return Virtual{object, physical, "its model is one of virtual functions"};
  if (has_os_device(object) || !physical || tree_.objects[beside].ids.device == function.ids.device)
    return std::nullopt;
  return Virtual{object, physical, "it is unused, of another model than the function before it"};
}

// The first function of the same card that may have virtual ones.
uint32_t HwlocDevices::physical_beside(uint32_t object) const {
  const HwlocObject& function = tree_.objects[object];
  const Bdf first{function.bdf.domain, function.bdf.bus, 0, 0};
  for (auto i = functions_.lower_bound(first); i != functions_.end(); ++i) {
    const auto& [bdf, other] = *i;
    if (bdf.domain != first.domain || bdf.bus != first.bus || other == object) break;
    const HwlocObject& candidate = tree_.objects[other];
    const bool same_maker = candidate.ids.vendor == function.ids.vendor ||
                            candidate.ids.subsystem_vendor == function.ids.subsystem_vendor;
    if (same_maker && is_nic(candidate) && has_os_device(other) &&
        !is_one_of(candidate.ids, kVirtualFunctions))
      return other;
  }
  return kNoDevice;
}

// Bridges come in layers: ports (of the CPU, of switches), and beneath a port at most one upstream
// port, which stands for its switch. Counted from the CPU down, so that a spurious bridge moves
// only what is beneath it.
uint32_t HwlocDevices::container_of(uint32_t object) {
  const uint32_t above = tree_.objects[object].parent;
  if (above == kNoDevice || !tree_.objects[above].is_io()) return numa_of(above);
  const bool is_switch = tree_.objects[above].type == HwlocType::bridge && levels_[above] % 2 == 0;
  return is_switch ? switch_of(above) : container_of(above);
}

uint32_t HwlocDevices::switch_of(uint32_t bridge) {
  if (devices_[bridge] == kNoDevice)
    see_function(bridge, describe(bridge, DeviceKind::pci_switch, container_of(bridge)));
  return devices_[bridge];
}

uint32_t HwlocDevices::numa_of(uint32_t object) {
  if (object == kNoDevice) return kNoDevice;
  const auto [known, is_new] = near_.emplace(object, kNoDevice);
  if (is_new) known->second = only_numa_of(object);
  return known->second;
}

uint32_t HwlocDevices::only_numa_of(uint32_t object) const {
  const Bitmap near = bitmap(tree_.objects[object].nodeset);
  uint32_t found = kNoDevice;
  for (const auto& [number, index] : numa_) {
    if (!hwloc_bitmap_isset(near.get(), number)) continue;
    if (found != kNoDevice) return kNoDevice;  // by several: the firmware did not say which
    found = index;
  }
  return found;
}

}  // namespace crosstie::probe
