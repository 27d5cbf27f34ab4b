// SPDX-License-Identifier: Apache-2.0
// CPUs, NUMA nodes and PCI as hwloc tells them; link speeds from sysfs; then the drivers.
#include "topology/probe/live.h"

#include <hwloc.h>

#include <system_error>

#include "topology/probe/bitmap.h"
#include "topology/probe/hwloc_devices.h"
#include "topology/probe/seeing.h"

namespace crosstie {
namespace {

using probe::Bitmap;
using probe::HwlocObject;
using probe::HwlocTree;
using probe::HwlocType;
using probe::NicNames;
using probe::read_line;
using probe::read_number;

constexpr Provenance kDriver = Provenance::driver;

struct HwlocTraits {
  using type = hwloc_topology_t;
  static constexpr type none = nullptr;
  static void close(type topology) { hwloc_topology_destroy(topology); }
};
using Hwloc = Handle<HwlocTraits>;

// The CPUs of a list as of sysfs: "0-31,64-95".
Bitmap cpus_of(const std::filesystem::path& list) {
  Bitmap out(hwloc_bitmap_alloc());
  hwloc_bitmap_list_sscanf(out.get(), read_line(list).c_str());
  return out;
}

// Whether a NUMA node has CPUs of several packages, and not all of them, as in virtual machines
// with odd settings. hwloc would print a page about it to stderr.
bool nodes_cut_packages(const std::filesystem::path& sysfs) {
  const auto system = sysfs / "devices" / "system";
  // Numbers may be missing: POWER9 has node0 and node8.
  std::error_code error;
  std::filesystem::directory_iterator node(system / "node", error);
  for (; !error && node != std::filesystem::directory_iterator(); node.increment(error)) {
    const Bitmap cpus = cpus_of(node->path() / "cpulist");
    const Bitmap rest(hwloc_bitmap_dup(cpus.get()));
    for (int cpu = hwloc_bitmap_first(rest.get()); cpu >= 0;) {
      const auto topology = system / "cpu" / fmt::format("cpu{}", cpu) / "topology";
      const Bitmap package = cpus_of(topology / "core_siblings_list");
      if (hwloc_bitmap_iszero(package.get())) break;
      if (!hwloc_bitmap_isincluded(cpus.get(), package.get()) &&
          !hwloc_bitmap_isincluded(package.get(), cpus.get()))
        return true;
      hwloc_bitmap_andnot(rest.get(), rest.get(), package.get());
      cpu = hwloc_bitmap_first(rest.get());
    }
  }
  return false;
}

// We ask the drivers ourselves; hwloc's own plugins for them take long to start (OpenCL, X11)
// or would open a second NVML. "pci" (libpciaccess) leaks and adds names only: without it hwloc
// reads PCI from sysfs.
void leave_out_plugins(hwloc_topology_t topology) {
  for (const char* plugin : {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl", "pci"})
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
}

// Of the rest (caches, cores, memory) nothing is asked.
void keep_what_we_read(hwloc_topology_t topology, bool packages) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (packages)
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
}

Result<std::string> ask_hwloc(bool packages) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail_errno(Code::io, "hwloc_topology_init");
  const Hwloc topology(raw);
  leave_out_plugins(raw);
  keep_what_we_read(raw, packages);
  // Devices sit by NUMA nodes that a container may not use.
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0)
    return fail_errno(Code::io, "hwloc_topology_set_flags");
  if (hwloc_topology_load(raw) != 0) return fail_errno(Code::io, "hwloc_topology_load");
  if (!hwloc_topology_is_thissystem(raw))
    return fail(Code::unsupported,
                "hwloc shows another machine, as HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT "
                "asks it to; unset that, or give its file with -i");
  char* xml = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(raw, &xml, &length, 0) != 0)
    return fail_errno(Code::io, "hwloc_topology_export_xmlbuffer");
  std::string text(xml);
  hwloc_free_xmlbuffer(raw, xml);
  return text;
}

class LiveAside : public probe::HwlocAside {
 public:
  explicit LiveAside(const std::filesystem::path& sysfs) : sysfs_(sysfs) {}

  // The most that both ends can do. The present speed would mislead: idle GPUs slow their links.
  void set_pcie(Device& d, const HwlocObject& function, const HwlocObject* port) override {
    double speed = 0, lanes = 0;
    for (const HwlocObject* end : {&function, port}) {
      if (end == nullptr) continue;
      const double its_speed = read_number(folder(end->bdf) / "max_link_speed");
      const double its_lanes = read_number(folder(end->bdf) / "max_link_width");
      if (its_speed > 0) speed = speed > 0 ? std::min(speed, its_speed) : its_speed;
      if (its_lanes > 0) lanes = lanes > 0 ? std::min(lanes, its_lanes) : its_lanes;
    }
    if (speed > 0) d.pcie_speed = known(speed, kDriver);
    if (lanes > 0 && lanes <= 32)
      d.pcie_lanes = known(static_cast<int>(lanes), kDriver);  // 255: unknown
  }

  std::optional<Bdf> physical_function(const Bdf& function) override {
    std::error_code none;
    const auto link = std::filesystem::read_symlink(folder(function) / "physfn", none);
    const auto bdf = parse_bdf(link.filename().native());
    return bdf ? std::optional(*bdf) : std::nullopt;
  }
  Provenance provenance() override { return kDriver; }

 private:
  std::filesystem::path folder(const Bdf& bdf) const {
    return sysfs_ / "bus" / "pci" / "devices" / to_text(bdf);
  }
  const std::filesystem::path& sysfs_;
};

class Probe {
 public:
  Probe(const LiveSources& sources, const HwlocTree& tree)
      : drivers_(sources.drivers),
        hcas_(sources.hcas),
        tree_(tree),
        builder_(sources.host, "live"),
        aside_(drivers_.sysfs),
        devices_(tree, aside_, builder_) {}

  Result<Machine> run(bool packages) {
    devices_.see();
    if (!packages)
      builder_.gap("packages",
                   "NUMA nodes and packages of CPUs overlap; hwloc sees the former only",
                   "no packages");
    note_names();
    see_ports();
    see_gpus();
    probe::see_pci_functions(builder_, drivers_.sysfs);
    return std::move(builder_).build();
  }

 private:
  void note_names();
  void see_ports();
  void see_gpus();

  const Drivers& drivers_;
  const std::string& hcas_;
  const HwlocTree& tree_;
  Builder builder_;
  LiveAside aside_;
  probe::HwlocDevices devices_;
  NicNames names_;
};

void Probe::note_names() {
  for (uint32_t i = 0; i < tree_.objects.size(); i++) {
    const HwlocObject& object = tree_.objects[i];
    if (object.type != HwlocType::os || object.name.empty()) continue;
    const uint32_t function = devices_.function_of(i), nic = devices_.device(function);
    if (nic == kNoDevice || builder_.device(nic).kind != DeviceKind::nic) continue;
    if (devices_.shares_ports(function))
      names_.shared.insert(object.name);
    else if (object.network)
      names_.net[object.name] = nic;
    else if (object.rdma)
      names_.rdma[object.name] = nic;
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
  const bool packages = !nodes_cut_packages(sources.drivers.sysfs);
  const auto xml =
      sources.hwloc_xml.empty() ? ask_hwloc(packages) : Result<std::string>(sources.hwloc_xml);
  if (!xml) return pass(xml);
  const auto tree = probe::parse_hwloc_xml(*xml);
  if (!tree) return pass(tree, "hwloc");
  return Probe(sources, *tree).run(packages);
}

}  // namespace crosstie
