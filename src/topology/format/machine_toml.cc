// SPDX-License-Identifier: Apache-2.0
// Reads a machine description in TOML:
//
//   name = "dgx-h100"
//   [cpu]                # every socket is alike
//   sockets = 2
//   numa_per_socket = 1
//   arch, vendor, model  # strings
//   family, model_number # as CPUID tells them
//   [gpu]                # every GPU is alike
//   model, compute_capability = 90, pcie_gt_s = 32.0, pcie_lanes = 16
//   gcn = "gfx942"       # of AMD's GPUs, in place of compute_capability
//   peer_access = false  # optional: the driver lets no GPU at another's memory
//   gpu_direct = false   # optional: nor network devices
//   [nic]                # every NIC is alike, with one port each
//   model, gigabits_per_second = 400.0, pcie_gt_s, pcie_lanes
//   pci_vendor = 0x17db, pci_device = 0x0501   # optional: what its PCI function says it is
//   [nvlink]             # optional; has one of the next three
//   links_to_switch = [5, 4, 4, 5]     # of every GPU to each NVSwitch
//   links_to_each_gpu = 4              # of every GPU to each other one
//   pairs = [[0, 1, 1], [0, 3, 2]]     # two GPUs and the number of links between them
//   hosts_in_domain = 18 # optional: hosts whose GPUs are on the same NVSwitches
//   [xgmi]               # optional: as [nvlink] from GPU to GPU
//   [c2c]                # optional: from every GPU to its NUMA node
//   links = 5, gigabytes_per_second = 45.0   # of a link, one way
//   [pcie]               # the switches' own links to their CPU
//   switch_gt_s, switch_lanes
//   [[pcie_switch]]      # what sits behind one PCIe switch
//   numa = 0
//   gpus = [0]           # their numbers, or { number = 0, bdf = "0000:1b:00.0" }
//   nics = [{ name = "mlx5_0", bdf = "0000:18:00.0" }]   # bdf may be left out
//   [[root_ports]]       # what sits behind none: numa, gpus, nics
//
// Every table has a `source`, which says where its numbers come from; without one a gap says so.
#include <map>
#include <set>

#include "topology/builder.h"
#include "topology/format/toml.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

constexpr Provenance kFile = Provenance::file;
constexpr int64_t kMostGpu = 255;     // of a host
constexpr int64_t kMostLinks = 1024;  // of one GPU to another

class Reader : TomlReader {
 public:
  Reader(const toml::table& root, std::string source)
      : root_(root), builder_(root["name"].value_or(std::string("host")), std::move(source)) {}

  Result<Machine> read();

 private:
  void read_cpus();
  void read_nvlink();
  void read_c2c();
  void read_pcie_switch(const toml::table& group);
  void read_root_ports(const toml::table& group);
  uint32_t numa_of(const toml::table& group);
  void read_group(const toml::table& group, uint32_t parent, uint32_t numa);
  void read_gpu(const toml::node& gpu, uint32_t parent, uint32_t numa);
  void describe_gpu(Device& gpu);
  void read_nic(const toml::node& nic, uint32_t parent);
  void link_gpus(std::string_view key, LinkType type);
  void link_pair(const toml::node& pair, LinkType type);
  void refuse_peers();

  void once(const toml::node& at, std::string what);
  const toml::table& table(std::string_view key, Keys keys);
  void set_pcie(Device& device, const toml::table& in, std::string_view speed,
                std::string_view lanes);
  void set_address(Device& device, const toml::table& in);
  bool need_flag(const toml::table& in, std::string_view key) {
    if (!in.get(key)->is_boolean())
      mistake(*in.get(key), fmt::format("'{}' must be true or false", key));
    return in.get(key)->value_or(false);
  }
  uint16_t pci_id(const toml::table& in, std::string_view key) {
    return static_cast<uint16_t>(need_number<int64_t>(in, key, 1, 0xffff));
  }

  const toml::table& root_;
  const toml::table nothing_;
  Builder builder_;
  std::vector<uint32_t> numa_nodes_;
  std::map<int64_t, uint32_t> gpus_;  // by number
  struct NvSwitch {
    uint32_t device, links;  // links of each GPU to it
  };
  std::vector<NvSwitch> nvswitches_;
  std::optional<Builder::Bundle> c2c_;
  std::set<std::string> used_;  // what may be listed once
};

void Reader::once(const toml::node& at, std::string what) {
  const auto [place, is_new] = used_.insert(std::move(what));
  if (!is_new) mistake(at, fmt::format("{} is listed twice", *place));
}

const toml::table& Reader::table(std::string_view key, Keys keys) {
  const toml::table* const found = root_[key].as_table();
  if (found == nullptr) {
    mistake(root_, fmt::format("a table [{}] is needed", key));
    return nothing_;
  }
  allow(*found, fmt::format("[{}]", key), keys);
  if (!found->contains("source")) builder_.gap(fmt::format("[{}]", key), "names no source");
  return *found;
}

void Reader::set_pcie(Device& device, const toml::table& in, std::string_view speed,
                      std::string_view lanes) {
  device.pcie_speed = known(pcie_speed(in, speed), kFile);
  device.pcie_lanes = known(pcie_lanes(in, lanes), kFile);
}

void Reader::set_address(Device& device, const toml::table& in) {
  const toml::node* const node = in.get("bdf");
  if (node == nullptr) return;
  device.identity.bdf = address(*node);
  if (device.identity.bdf) once(in, fmt::format("bdf {}", to_text(*device.identity.bdf)));
}

Result<Machine> Reader::read() {
  allow(
      root_, "a machine",
      {"name", "cpu", "gpu", "nic", "nvlink", "xgmi", "c2c", "pcie", "pcie_switch", "root_ports"});
  read_cpus();
  if (root_.contains("nvlink")) read_nvlink();
  if (root_.contains("c2c")) read_c2c();
  for_each_table(root_, "pcie_switch", [&](const auto& group) { read_pcie_switch(group); });
  for_each_table(root_, "root_ports", [&](const auto& group) { read_root_ports(group); });
  if (root_.contains("nvlink")) link_gpus("nvlink", LinkType::nvlink);
  if (root_.contains("xgmi")) {
    table("xgmi", {"links_to_each_gpu", "pairs", "source"});
    link_gpus("xgmi", LinkType::xgmi);
  }
  refuse_peers();
  if (!status_) return pass(status_);
  return std::move(builder_).build();
}

void Reader::read_cpus() {
  const toml::table& in = table("cpu", {"sockets", "numa_per_socket", "arch", "vendor", "model",
                                        "family", "model_number", "source"});
  const CpuModel model{need<std::string>(in, "arch"), need<std::string>(in, "vendor"),
                       static_cast<int>(need_number<int64_t>(in, "family", 0, 1 << 20)),
                       static_cast<int>(need_number<int64_t>(in, "model_number", 0, 1 << 20))};
  const auto sockets = need_number<int64_t>(in, "sockets", 1, 64);
  const auto per_socket = need_number<int64_t>(in, "numa_per_socket", 1, 16);
  for (uint32_t socket = 0; socket < sockets; socket++) {
    Device cpu{.kind = DeviceKind::cpu};
    cpu.identity.number = socket;
    cpu.cpu = known(model, kFile);
    cpu.model = known(need<std::string>(in, "model"), kFile);
    Device numa{.kind = DeviceKind::numa, .parent = builder_.see(cpu)};
    numa.cpu = cpu.cpu;
    for (int64_t i = 0; i < per_socket; i++) {
      numa.identity.number = static_cast<uint32_t>(numa_nodes_.size());
      numa_nodes_.push_back(builder_.see(numa));
    }
  }
}

void Reader::read_nvlink() {
  constexpr int64_t kMostHosts = 576;  // an NVLink domain has at most so many GPUs
  const toml::table& in = table(
      "nvlink", {"links_to_switch", "links_to_each_gpu", "pairs", "hosts_in_domain", "source"});
  for (const uint32_t links : links_to_switches(list(in, "links_to_switch")))
    nvswitches_.push_back({builder_.see({.kind = DeviceKind::nvswitch}), links});
  const auto hosts = number_if_any<int64_t>(in, "hosts_in_domain", 1, kMostHosts);
  if (!hosts) return;
  if (nvswitches_.empty()) mistake(in, "'hosts_in_domain' needs 'links_to_switch'");
  builder_.share_nvswitches(static_cast<uint32_t>(*hosts));
}

void Reader::read_c2c() {
  const toml::table& in = table("c2c", {"links", "gigabytes_per_second", "source"});
  const auto links = static_cast<uint32_t>(need_number<int64_t>(in, "links", 1, 1024));
  const double each = need_number(in, "gigabytes_per_second", 0.001, 1e6);
  c2c_ = {LinkType::c2c, links, known(gigabytes(each * links), kFile)};
}

uint32_t Reader::numa_of(const toml::table& group) {
  const auto numa = need<int64_t>(group, "numa");
  if (status_ && (numa < 0 || numa >= std::ssize(numa_nodes_)))
    mistake(group, fmt::format("there is no NUMA node {}", numa));
  return status_ ? numa_nodes_[static_cast<size_t>(numa)] : kNoDevice;
}

void Reader::read_pcie_switch(const toml::table& group) {
  allow(group, "[[pcie_switch]]", {"numa", "gpus", "nics", "source"});
  Device d{.kind = DeviceKind::pci_switch, .parent = numa_of(group)};
  set_pcie(d, table("pcie", {"switch_gt_s", "switch_lanes", "source"}), "switch_gt_s",
           "switch_lanes");
  if (status_) read_group(group, builder_.see(d), d.parent);
}

void Reader::read_root_ports(const toml::table& group) {
  allow(group, "[[root_ports]]", {"numa", "gpus", "nics", "source"});
  const uint32_t numa = numa_of(group);
  if (status_) read_group(group, numa, numa);
}

void Reader::read_group(const toml::table& group, uint32_t parent, uint32_t numa) {
  for (const toml::node& gpu : list(group, "gpus")) read_gpu(gpu, parent, numa);
  for (const toml::node& nic : list(group, "nics")) read_nic(nic, parent);
}

void Reader::read_gpu(const toml::node& gpu, uint32_t parent, uint32_t numa) {
  Device d{.kind = DeviceKind::gpu, .parent = parent};
  const toml::node* number = &gpu;
  if (const toml::table* const named = gpu.as_table()) {
    allow(*named, "a GPU", {"number", "bdf"});
    set_address(d, *named);
    number = named->get("number");
  }
  const auto index = number == nullptr ? -1 : number->value_exact<int64_t>().value_or(-1);
  if (index < 0 || index > kMostGpu)
    return mistake(gpu, fmt::format("'gpus' must hold numbers from 0 to {}", kMostGpu));
  d.label = fmt::format("gpu{}", index);
  d.index = known(static_cast<int>(index), kFile);
  once(gpu, d.label);
  describe_gpu(d);
  const uint32_t here = builder_.see(d);
  gpus_.emplace(index, here);
  for (const NvSwitch& to : nvswitches_)
    builder_.link(here, to.device, {LinkType::nvlink, to.links});
  if (c2c_) builder_.link(here, numa, *c2c_);
}

// What all GPUs have in common.
void Reader::describe_gpu(Device& gpu) {
  const toml::table& in = table("gpu", {"model", "compute_capability", "gcn", "peer_access",
                                        "gpu_direct", "pcie_gt_s", "pcie_lanes", "source"});
  gpu.model = known(need<std::string>(in, "model"), kFile);
  if (in.contains("gcn")) {
    const auto gcn = need<std::string>(in, "gcn");
    gpu.attributes["gpu.gcn"] = gcn;
    const int capability = capability_of_gcn(gcn);
    if (capability == 0) mistake(in, "'gcn' must name an architecture, as \"gfx942\"");
    gpu.compute_capability = known(capability, kFile);
  } else {
    gpu.compute_capability =
        known(static_cast<int>(need_number<int64_t>(in, "compute_capability", 1, 1000)), kFile);
  }
  if (in.contains("gpu_direct")) gpu.gpu_direct = known(need_flag(in, "gpu_direct"), kFile);
  set_pcie(gpu, in, "pcie_gt_s", "pcie_lanes");
}

// From GPU to GPU, all of which are known by now.
void Reader::link_gpus(std::string_view key, LinkType type) {
  const toml::table* const in = root_[key].as_table();
  if (in == nullptr || !status_) return;
  const int ways =
      in->contains("links_to_switch") + in->contains("links_to_each_gpu") + in->contains("pairs");
  if (ways != 1)
    return mistake(
        *in, fmt::format("[{}] needs one way of telling where links lead, and has {}", key, ways));
  if (const auto each = number_if_any<int64_t>(*in, "links_to_each_gpu", 1, kMostLinks))
    for (auto a = gpus_.begin(); a != gpus_.end(); ++a)
      for (auto b = std::next(a); b != gpus_.end(); ++b)
        builder_.link(a->second, b->second, {type, static_cast<uint32_t>(*each)});
  for (const toml::node& pair : list(*in, "pairs")) link_pair(pair, type);
}

void Reader::link_pair(const toml::node& pair, LinkType type) {
  std::array<int64_t, 3> numbers{};
  const toml::array* const of = pair.as_array();
  for (size_t i = 0; of != nullptr && of->size() == numbers.size() && i < numbers.size(); i++)
    numbers[i] = of->get(i)->value_exact<int64_t>().value_or(-1);
  const auto [first, second, links] = numbers;
  const auto a = gpus_.find(first), b = gpus_.find(second);
  if (a == gpus_.end() || b == gpus_.end() || a == b || links < 1 || links > kMostLinks)
    return mistake(pair,
                   "'pairs' must hold two GPUs and the number of links between them, as "
                   "[0, 3, 2]");
  once(pair,
       fmt::format("the pair of GPUs {} and {}", std::min(first, second), std::max(first, second)));
  builder_.link(a->second, b->second, {type, static_cast<uint32_t>(links)});
}

void Reader::refuse_peers() {
  const toml::table* const in = root_["gpu"].as_table();
  if (in == nullptr || !in->contains("peer_access") || need_flag(*in, "peer_access")) return;
  for (auto a = gpus_.begin(); a != gpus_.end(); ++a)
    for (auto b = std::next(a); b != gpus_.end(); ++b)
      builder_.refuse(a->second, b->second, "its kind of GPU has no peer access");
}

void Reader::read_nic(const toml::node& nic, uint32_t parent) {
  const toml::table& in = table("nic", {"model", "gigabits_per_second", "pci_vendor", "pci_device",
                                        "pcie_gt_s", "pcie_lanes", "source"});
  if (!nic.is_table()) return mistake(nic, "'nics' must hold tables, as { name = \"mlx5_0\" }");
  const toml::table& names = *nic.as_table();
  allow(names, "a NIC", {"name", "bdf"});
  Device function{.kind = DeviceKind::nic, .parent = parent};
  set_address(function, names);
  function.model = known(need<std::string>(in, "model"), kFile);
  if (in.contains("pci_vendor") || in.contains("pci_device"))
    function.pci_ids = known(PciIds{pci_id(in, "pci_vendor"), pci_id(in, "pci_device")}, kFile);
  set_pcie(function, in, "pcie_gt_s", "pcie_lanes");
  Device port{.kind = DeviceKind::port, .parent = builder_.see(function)};
  port.identity.name = need<std::string>(names, "name");
  once(nic, port.identity.name);
  port.identity.number = 1;
  port.line_rate = known(gigabits(need_number(in, "gigabits_per_second", 0.001, 1e6)), kFile);
  builder_.see(port);
}

}  // namespace

Result<Machine> read_machine_table(const toml::table& table, std::string source) {
  return Reader(table, std::move(source)).read();
}

Result<Machine> read_machine_toml(std::string_view text, std::string source) {
  return parse_toml(
      text, [&](const toml::table& root) { return read_machine_table(root, std::move(source)); });
}

}  // namespace crosstie
