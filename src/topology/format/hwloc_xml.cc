// SPDX-License-Identifier: Apache-2.0
// Reads hwloc's XML (lstopo FILE.xml): what the live probe asks of sysfs and the drivers comes
// from the devices of the operating system that hwloc lists beneath PCI functions.
#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "topology/format/formats.h"
#include "topology/gpu_kinds.h"
#include "topology/probe/hwloc_devices.h"

namespace crosstie {
namespace {

using probe::HwlocMatrix;
using probe::HwlocObject;
using probe::HwlocTree;
using probe::HwlocType;
using probe::kNvidia;

constexpr Provenance kFile = Provenance::file;

// What hwloc's plugin for AMD GPUs counts for one link, in MB/s (rsmi_minmax_bandwidth_get).
constexpr uint64_t kXgmiLink = 50000;
// And the one for NVIDIA's: NVLink 1, and each later.
constexpr uint64_t kFirstNvlink = 20000, kNvlink = 25000;

struct PcieLink {
  double gigatransfers;
  int lanes;
};

// hwloc tells GB/s, coding taken off: 8b/10b up to 5 GT/s, 128b/130b after. Several splits have the
// same product, as 8 GT/s x16 and 16 GT/s x8; the widest is told, as what counts is the product.
PcieLink split(double gigabytes) {
  for (const int lanes : {16, 8, 4, 2, 1})
    for (const double speed : {2.5, 5.0, 8.0, 16.0, 32.0, 64.0}) {
      const double rate = speed * (speed <= 5 ? 0.8 : 128.0 / 130) * lanes / 8;
      if (std::abs(rate - gigabytes) < 0.005 * rate) return {speed, lanes};
    }
  const double coding = gigabytes <= 0.5 ? 0.8 : 128.0 / 130;
  return {gigabytes * 8 / coding, 1};
}

class FileAside : public probe::HwlocAside {
 public:
  // The speed at which the link ran. Of its ends the slower: for a GPU hwloc may tell what NVML
  // says that it could do.
  void set_pcie(Device& d, const HwlocObject& function, const HwlocObject* port) override {
    double gigabytes = function.gigabytes;
    if (port != nullptr && port->gigabytes > 0)
      gigabytes = gigabytes > 0 ? std::min(gigabytes, port->gigabytes) : port->gigabytes;
    if (gigabytes == 0) return;
    const PcieLink link = split(gigabytes);
    d.pcie_speed = d.pcie_speed_now = known(link.gigatransfers, kFile);
    d.pcie_lanes = d.pcie_lanes_now = known(link.lanes, kFile);
  }
  std::optional<Bdf> physical_function(const Bdf&) override { return std::nullopt; }
  Provenance provenance() override { return kFile; }
};

// A number that text ends with: 3 of "rsmi3".
std::optional<int> number_at_end(std::string_view text) {
  const size_t begin = text.find_last_not_of("0123456789") + 1;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// "506b:4b03:003c:eee8"
std::optional<uint64_t> guid(std::string text) {
  std::erase(text, ':');
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool right = error == std::errc() && end == text.data() + text.size() && value != 0;
  return right ? std::optional(value) : std::nullopt;
}

// "GPU-…" of NVIDIA; of AMD 16 digits, all 0 where its driver does not tell.
std::string uuid(const HwlocObject& gpu) {
  std::string text = gpu.info("NVIDIAUUID");
  if (text.empty()) text = gpu.info("AMDUUID");
  return text.find_first_not_of('0') == text.npos ? std::string() : text;
}

struct GidParts {
  std::string text;
  uint64_t prefix = 0, interface = 0;
};
std::optional<GidParts> parse_gid(const std::string& text) {
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> shown{};
  inet_ntop(AF_INET6, &address, shown.data(), shown.size());
  std::array<uint64_t, 2> halves{};
  std::memcpy(halves.data(), &address, sizeof(address));
  return GidParts{shown.data(), be64toh(halves[0]), be64toh(halves[1])};
}

class Reader {
 public:
  Reader(const HwlocTree& tree, std::string name, std::string source)
      : tree_(tree),
        builder_(std::move(name), std::move(source)),
        devices_(tree, aside_, builder_),
        os_(tree.objects.size()) {}

  Result<Machine> read();

 private:
  void sort_os_devices();
  void read_gpu(uint32_t function);
  void read_partitions(uint32_t function, const std::vector<uint32_t>& parts);
  void read_nic(uint32_t function);
  bool read_rdma_ports(uint32_t os_device, uint32_t nic, bool infiniband);
  void read_rdma_port(Device port, const HwlocObject& rdma, bool infiniband);
  void read_network_port(uint32_t os_device, uint32_t nic);
  void read_matrix(const HwlocMatrix& matrix);
  void link(uint32_t a, uint32_t b, uint64_t megabytes, bool nvlink);
  uint32_t end_of(uint32_t object) const;
  void note_slow_link(uint32_t device);

  const HwlocTree& tree_;
  const GpuKinds gpu_kinds_;
  FileAside aside_;
  Builder builder_;
  probe::HwlocDevices devices_;
  std::vector<std::vector<uint32_t>> os_;  // by function
};

Result<Machine> Reader::read() {
  devices_.see();
  sort_os_devices();
  bool nvidia = false;
  for (uint32_t i = 0; i < tree_.objects.size(); i++) {
    const uint32_t device = devices_.device(i);
    if (device == kNoDevice || !tree_.objects[i].is_io()) continue;
    note_slow_link(device);
    const DeviceKind kind = builder_.device(device).kind;
    if (kind == DeviceKind::gpu) read_gpu(i);
    if (kind == DeviceKind::nic) read_nic(i);
    nvidia |= kind == DeviceKind::gpu && tree_.objects[i].ids.vendor == kNvidia;
  }
  for (const HwlocMatrix& matrix : tree_.matrices) read_matrix(matrix);
  if (nvidia && tree_.matrices.empty())
    builder_.gap("NVLink", "the file does not tell; hwloc does if it was built with NVML",
                 "no NVLinks");
  return std::move(builder_).build();
}

void Reader::sort_os_devices() {
  for (uint32_t i = 0; i < tree_.objects.size(); i++)
    if (tree_.objects[i].type == HwlocType::os) os_[devices_.function_of(i)].push_back(i);
}

// The least that a link trains to, and what idle devices go back to.
void Reader::note_slow_link(uint32_t device) {
  const Device& d = builder_.device(device);
  if (d.kind != DeviceKind::nic && d.pcie_speed_now && d.pcie_speed_now->value == 2.5)
    builder_.gap(device, "its link ran at 2.5 GT/s when it was looked at, as idle ones may",
                 "it is no faster", GapAbout::pcie_link);
}

// Partitions of a GPU show as several devices of one driver beneath one function.
void Reader::read_gpu(uint32_t function) {
  Device gpu{.kind = DeviceKind::gpu};
  gpu.identity.bdf = tree_.objects[function].bdf;
  std::vector<uint32_t> parts;
  for (const std::string_view driver : {"nvml", "cuda", "rsmi"}) {
    std::vector<uint32_t> its;
    for (const uint32_t i : os_[function])
      if (tree_.objects[i].gpu && tree_.objects[i].name.starts_with(driver)) its.push_back(i);
    if (its.size() > parts.size()) parts = std::move(its);
  }
  for (const uint32_t i : os_[function])
    if (const auto model = tree_.objects[i].info("GPUModel"); !model.empty() && !gpu.model)
      gpu.model = known(model, kFile);
  if (parts.size() == 1) {
    const HwlocObject& only = tree_.objects[parts[0]];
    gpu.identity.uuid = uuid(only);
    const auto index = number_at_end(only.name);
    if (index && !only.name.starts_with("cuda")) gpu.index = known(*index, kFile);
  }
  const GpuKinds::Kind* const kind = gpu_kinds_.find(tree_.objects[function].ids);
  if (kind != nullptr && !kind->gcn.empty()) gpu.attributes["gpu.gcn"] = kind->gcn;
  builder_.see(gpu);
  if (parts.size() > 1) read_partitions(function, parts);
}

void Reader::read_partitions(uint32_t function, const std::vector<uint32_t>& parts) {
  std::map<std::string, int> uses;
  for (const uint32_t i : parts) uses[uuid(tree_.objects[i])]++;
  for (const uint32_t i : parts) {
    const HwlocObject& object = tree_.objects[i];
    Device part{.kind = DeviceKind::gpu, .parent = devices_.device(function)};
    part.label = part.identity.name = object.name;
    if (uses[uuid(object)] == 1) part.identity.uuid = uuid(object);
    if (const auto index = number_at_end(object.name)) part.index = known(*index, kFile);
    builder_.see(part);
  }
}

// An RDMA port and the network device over it are one port: the former is the one told of.
void Reader::read_nic(uint32_t function) {
  if (devices_.shares_ports(function)) return;
  const uint32_t nic = devices_.device(function);
  const HwlocObject& object = tree_.objects[function];
  const bool infiniband = object.pci_class == 0x0207 || object.pci_class == 0x0c06;
  bool any = false;
  for (const uint32_t i : os_[function])
    if (tree_.objects[i].rdma) any |= read_rdma_ports(i, nic, infiniband);
  for (const uint32_t i : os_[function])
    if (!any && tree_.objects[i].network) read_network_port(i, nic);
}

bool Reader::read_rdma_ports(uint32_t os_device, uint32_t nic, bool infiniband) {
  const HwlocObject& rdma = tree_.objects[os_device];
  Device about{.kind = DeviceKind::nic};
  about.identity.bdf = builder_.device(nic).identity.bdf;
  if (const auto node = guid(rdma.info("NodeGUID"))) about.node_guid = known(*node, kFile);
  if (const auto system = guid(rdma.info("SysImageGUID")))
    about.sys_image_guid = known(*system, kFile);
  builder_.see(about);
  Device port{.kind = DeviceKind::port, .parent = nic};
  port.identity.name = rdma.name;
  uint32_t number = 1;
  do {
    port.identity.number = number;
    read_rdma_port(port, rdma, infiniband);
    number++;
  } while (!rdma.info(fmt::format("Port{}State", number)).empty());
  return true;
}

void Reader::read_rdma_port(Device port, const HwlocObject& rdma, bool infiniband) {
  const std::string prefix = fmt::format("Port{}", *port.identity.number);
  const std::string state = rdma.info(prefix + "State");
  // Of IBV_PORT_NOP, DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER.
  if (!state.empty()) port.carrier = known(state != "0" && state != "1", kFile);
  const std::string lid = rdma.info(prefix + "LID");
  if (const long number = std::strtol(lid.c_str(), nullptr, 16);
      infiniband && !lid.empty() && number >= 0 && number < 0xffff)
    port.lid = known(static_cast<int>(number), kFile);
  if (infiniband) port.link_layer = known(std::string("InfiniBand"), kFile);
  std::vector<Gid> gids;
  for (int i = 0;; i++) {
    const auto gid = parse_gid(rdma.info(fmt::format("{}GID{}", prefix, i)));
    if (!gid) break;
    gids.push_back({i, gid->text, infiniband ? "IB" : ""});
    if (i > 0 || !infiniband) continue;
    // The first GID of an InfiniBand port is its subnet and its own GUID.
    port.subnet_prefix = known(gid->prefix, kFile);
    port.identity.guid = gid->interface;
  }
  if (!gids.empty()) port.gids = known(std::move(gids), kFile);
  const uint32_t index = builder_.see(port);
  if (!state.empty() && state != "4") builder_.gap(index, "its link is not active");
}

void Reader::read_network_port(uint32_t os_device, uint32_t nic) {
  const HwlocObject& network = tree_.objects[os_device];
  Device port{.kind = DeviceKind::port, .parent = nic};
  port.identity.name = network.name;
  if (const auto address = network.info("Address"); !address.empty())
    port.attributes["hwloc.Address"] = address;
  builder_.see(port);
}

// A GPU, or the NUMA node of a CPU. Partitions share their GPU's links.
uint32_t Reader::end_of(uint32_t object) const {
  if (object == kNoDevice) return kNoDevice;
  return devices_.device(tree_.objects[object].type == HwlocType::os ? devices_.function_of(object)
                                                                     : object);
}

void Reader::read_matrix(const HwlocMatrix& matrix) {
  const size_t count = matrix.objects.size();
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> widest;
  bool astray = false;
  for (size_t a = 0; a < count; a++)
    for (size_t b = 0; b < count; b++) {
      const uint32_t from = end_of(matrix.objects[a]), to = end_of(matrix.objects[b]);
      const uint64_t value = matrix.values[a * count + b];
      if (value == 0 || a == b) continue;
      if (from == kNoDevice || to == kNoDevice) {
        astray = true;
        continue;
      }
      if (from == to) continue;  // partitions of one GPU
      uint64_t& best = widest[std::minmax(from, to)];
      best = std::max(best, value);
    }
  if (astray)
    builder_.gap(matrix.name, "tells of an end that is no GPU nor CPU of the file", "no such link");
  for (const auto& [ends, megabytes] : widest)
    link(ends.first, ends.second, megabytes, matrix.name == "NVLinkBandwidth");
}

void Reader::link(uint32_t a, uint32_t b, uint64_t megabytes, bool nvlink) {
  if (megabytes > 100'000'000)
    return builder_.gap(a, fmt::format("a link of {} MB/s", megabytes), "no such link");
  if (!nvlink) {
    const uint64_t count = std::max<uint64_t>(1, megabytes / kXgmiLink);
    const auto rate = known(gigabytes(static_cast<double>(megabytes) / 1000), kFile);
    return builder_.link(a, b, {LinkType::xgmi, static_cast<uint32_t>(count), rate});
  }
  const bool first = megabytes % kNvlink != 0 && megabytes % kFirstNvlink == 0;
  const uint64_t count = std::max<uint64_t>(1, megabytes / (first ? kFirstNvlink : kNvlink));
  builder_.link(a, b, {LinkType::nvlink, static_cast<uint32_t>(count)});
}

}  // namespace

Result<Machine> read_hwloc_xml(std::string_view text, std::string source) {
  const auto tree = probe::parse_hwloc_xml(text);
  if (!tree) return pass(tree);
  std::string name = tree->info("HostName");
  return Reader(*tree, name.empty() ? "host" : std::move(name), std::move(source)).read();
}

}  // namespace crosstie
