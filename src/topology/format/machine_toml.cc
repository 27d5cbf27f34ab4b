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
//   [nic]                # every NIC is alike, with one port each
//   model, gigabits_per_second = 400.0, pcie_gt_s, pcie_lanes
//   [nvlink]             # optional: every GPU has so many links to each NVSwitch
//   links_to_switch = [5, 4, 4, 5]
//   [pcie]               # the switches' own links to their CPU
//   switch_gt_s, switch_lanes
//   [[pcie_switch]]      # what sits behind one PCIe switch
//   numa = 0
//   gpus = [0]           # their numbers
//   nics = [{ name = "mlx5_0", bdf = "0000:18:00.0" }]   # bdf may be left out
//
// Every table has a `source`, which says where its numbers come from; without one a gap says so.
// toml++ asserts what a malformed key can break; an exception, caught below, is a plain message.
// Some of its assertions are in functions that may not throw; those no text can break.
#include <stdexcept>
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(expression) ((expression) ? void() : throw std::runtime_error("malformed key"))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <set>

#include "base/printable.h"
#include "topology/builder.h"
#include "topology/format/formats.h"

namespace crosstie {
namespace {

constexpr Provenance kFile = Provenance::file;
constexpr int64_t kMostGpu = 1023;  // of a host

class Reader {
 public:
  Reader(const toml::table& root, std::string source)
      : root_(root), builder_(root["name"].value_or(std::string("host")), std::move(source)) {}

  Result<Machine> read();

 private:
  void read_cpus();
  void read_nvswitches();
  void read_pcie_switch(const toml::table& group);
  void read_gpu(const toml::node& number, uint32_t parent);
  void read_nic(const toml::node& nic, uint32_t parent);

  // The first mistake stays; what follows it is read as empty.
  void mistake(const toml::node& at, std::string what);
  void once(const toml::node& at, std::string what);
  void allow(const toml::table& table, std::string_view place,
             std::initializer_list<std::string_view> keys);
  const toml::table& table(std::string_view key, std::initializer_list<std::string_view> keys);
  template <class T>
  T need(const toml::table& in, std::string_view key);
  template <class T>
  T need_number(const toml::table& in, std::string_view key, T least, T most);
  const toml::array& list(const toml::table& in, std::string_view key);
  void set_pcie(Device& device, const toml::table& in, std::string_view speed,
                std::string_view lanes);

  const toml::table& root_;
  const toml::table nothing_;
  const toml::array no_items_;
  Builder builder_;
  Status status_;
  std::vector<uint32_t> numa_nodes_;
  struct NvSwitch {
    uint32_t device, links;  // links of each GPU to it
  };
  std::vector<NvSwitch> nvswitches_;
  std::set<std::string> used_;  // what may be listed once
};

void Reader::mistake(const toml::node& at, std::string what) {
  if (status_) status_ = fail(Code::invalid, "line {}: {}", at.source().begin.line, what);
}

void Reader::once(const toml::node& at, std::string what) {
  const auto [place, is_new] = used_.insert(std::move(what));
  if (!is_new) mistake(at, fmt::format("{} is listed twice", *place));
}

void Reader::allow(const toml::table& table, std::string_view place,
                   std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : table)
    if (std::ranges::find(keys, key.str()) == keys.end())
      mistake(value, fmt::format("{} has no key '{}'; it has {}", place, key.str(),
                                 fmt::join(keys, ", ")));
}

const toml::table& Reader::table(std::string_view key,
                                 std::initializer_list<std::string_view> keys) {
  const toml::table* const found = root_[key].as_table();
  if (found == nullptr) {
    mistake(root_, fmt::format("a table [{}] is needed", key));
    return nothing_;
  }
  allow(*found, fmt::format("[{}]", key), keys);
  if (!found->contains("source")) builder_.gap(fmt::format("[{}]", key), "names no source");
  return *found;
}

template <class T>
T Reader::need(const toml::table& in, std::string_view key) {
  const toml::node* const node = in.get(key);
  if (node == nullptr) {
    mistake(in, fmt::format("'{}' is needed", key));
    return T{};
  }
  const auto value = node->value<T>();
  if (!value) mistake(*node, fmt::format("'{}' is of the wrong type", key));
  return value.value_or(T{});
}

// Numbers are checked here; what is wrong reads as the least.
template <class T>
T Reader::need_number(const toml::table& in, std::string_view key, T least, T most) {
  const T number = need<T>(in, key);
  if (number >= least && number <= most) return number;
  if (status_) mistake(*in.get(key), fmt::format("'{}' must be from {} to {}", key, least, most));
  return least;
}

const toml::array& Reader::list(const toml::table& in, std::string_view key) {
  const toml::node* const node = in.get(key);
  if (node == nullptr) return no_items_;
  if (node->is_array()) return *node->as_array();
  mistake(*node, fmt::format("'{}' must be a list", key));
  return no_items_;
}

void Reader::set_pcie(Device& device, const toml::table& in, std::string_view speed,
                      std::string_view lanes) {
  device.pcie_speed = known(need_number(in, speed, 1.0, 1024.0), kFile);  // GT/s
  device.pcie_lanes = known(static_cast<int>(need_number<int64_t>(in, lanes, 1, 64)), kFile);
}

Result<Machine> Reader::read() {
  allow(root_, "a machine", {"name", "cpu", "gpu", "nic", "nvlink", "pcie", "pcie_switch"});
  read_cpus();
  if (root_.contains("nvlink")) read_nvswitches();
  for (const toml::node& group : list(root_, "pcie_switch")) {
    if (!status_) break;
    if (group.is_table())
      read_pcie_switch(*group.as_table());
    else
      mistake(group, "pcie_switch must be a list of tables");
  }
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

void Reader::read_nvswitches() {
  constexpr size_t kMostSwitches = 64;
  constexpr int64_t kMostLinks = 1024;  // GPUs of 2025 have 18 in all
  const toml::array& counts =
      list(table("nvlink", {"links_to_switch", "source"}), "links_to_switch");
  if (counts.size() > kMostSwitches)
    return mistake(counts, fmt::format("'links_to_switch' lists more than {}", kMostSwitches));
  for (const toml::node& node : counts) {
    const auto links = node.value_exact<int64_t>().value_or(0);
    if (links < 1 || links > kMostLinks)
      return mistake(node,
                     fmt::format("'links_to_switch' must hold numbers from 1 to {}", kMostLinks));
    nvswitches_.push_back(
        {builder_.see({.kind = DeviceKind::nvswitch}), static_cast<uint32_t>(links)});
  }
}

void Reader::read_pcie_switch(const toml::table& group) {
  allow(group, "[[pcie_switch]]", {"numa", "gpus", "nics", "source"});
  const auto numa = need<int64_t>(group, "numa");
  if (status_ && (numa < 0 || numa >= std::ssize(numa_nodes_)))
    mistake(group, fmt::format("there is no NUMA node {}", numa));
  Device d{.kind = DeviceKind::pci_switch};
  set_pcie(d, table("pcie", {"switch_gt_s", "switch_lanes", "source"}), "switch_gt_s",
           "switch_lanes");
  if (!status_) return;
  d.parent = numa_nodes_[static_cast<size_t>(numa)];
  const uint32_t here = builder_.see(d);
  for (const toml::node& gpu : list(group, "gpus")) read_gpu(gpu, here);
  for (const toml::node& nic : list(group, "nics")) read_nic(nic, here);
}

void Reader::read_gpu(const toml::node& number, uint32_t parent) {
  const toml::table& in =
      table("gpu", {"model", "compute_capability", "pcie_gt_s", "pcie_lanes", "source"});
  Device gpu{.kind = DeviceKind::gpu, .parent = parent};
  const auto index = number.value_exact<int64_t>().value_or(-1);
  if (index < 0 || index > kMostGpu)
    return mistake(number, fmt::format("'gpus' must hold numbers from 0 to {}", kMostGpu));
  gpu.label = fmt::format("gpu{}", index);
  once(number, gpu.label);
  gpu.model = known(need<std::string>(in, "model"), kFile);
  gpu.compute_capability =
      known(static_cast<int>(need_number<int64_t>(in, "compute_capability", 1, 1000)), kFile);
  set_pcie(gpu, in, "pcie_gt_s", "pcie_lanes");
  const uint32_t here = builder_.see(gpu);
  for (const NvSwitch& to : nvswitches_)
    builder_.link(here, to.device, {LinkType::nvlink, to.links});
}

void Reader::read_nic(const toml::node& nic, uint32_t parent) {
  const toml::table& in =
      table("nic", {"model", "gigabits_per_second", "pcie_gt_s", "pcie_lanes", "source"});
  if (!nic.is_table()) return mistake(nic, "'nics' must hold tables, as { name = \"mlx5_0\" }");
  const toml::table& names = *nic.as_table();
  allow(names, "a NIC", {"name", "bdf"});
  Device function{.kind = DeviceKind::nic, .parent = parent};
  if (const auto text = names["bdf"].value<std::string>()) {
    const auto bdf = parse_bdf(*text);
    if (!bdf) return mistake(nic, bdf.error().text);
    function.identity.bdf = *bdf;
    once(nic, fmt::format("bdf {}", to_text(*bdf)));
  }
  function.model = known(need<std::string>(in, "model"), kFile);
  set_pcie(function, in, "pcie_gt_s", "pcie_lanes");
  Device port{.kind = DeviceKind::port, .parent = builder_.see(function)};
  port.identity.name = need<std::string>(names, "name");
  once(nic, port.identity.name);
  port.identity.number = 1;
  port.line_rate = known(gigabits(need_number(in, "gigabits_per_second", 0.001, 1e6)), kFile);
  builder_.see(port);
}

}  // namespace

Result<Machine> read_machine_toml(std::string_view text, std::string source) {
  // Its parser recurses on dotted keys; the largest machine we know takes 3 KiB.
  constexpr size_t kMost = 64 << 10;
  if (text.size() > kMost)
    return fail(Code::invalid, "is {} bytes long; a machine has at most {}", text.size(), kMost);
  try {
    const toml::table root = toml::parse(text);
    return Reader(root, std::move(source)).read();
  } catch (const toml::parse_error& error) {
    return fail(Code::invalid, "line {}: {}", error.source().begin.line,
                printable(error.description()));
  } catch (const std::exception& error) {
    return fail(Code::invalid, "cannot be read as TOML: {}", error.what());
  }
}

}  // namespace crosstie
