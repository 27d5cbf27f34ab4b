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

#include "topology/builder.h"
#include "topology/format/formats.h"

namespace crosstie {
namespace {

constexpr Provenance kFile = Provenance::file;

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
  void allow(const toml::table& table, std::string_view place,
             std::initializer_list<std::string_view> keys);
  const toml::table& table(std::string_view key, std::initializer_list<std::string_view> keys);
  template <class T>
  T need(const toml::table& in, std::string_view key);
  int64_t need_count(const toml::table& in, std::string_view key, int64_t most);
  const toml::array& list(const toml::table& in, std::string_view key);
  void set_pcie(Device& device, const toml::table& in, std::string_view speed,
                std::string_view lanes);

  const toml::table& root_;
  const toml::table nothing_;
  const toml::array no_items_;
  Builder builder_;
  Status status_;
  std::vector<uint32_t> numa_nodes_;
  std::vector<uint32_t> nvswitches_;
};

void Reader::mistake(const toml::node& at, std::string what) {
  if (status_) status_ = fail(Code::invalid, "line {}: {}", at.source().begin.line, what);
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

int64_t Reader::need_count(const toml::table& in, std::string_view key, int64_t most) {
  const auto count = need<int64_t>(in, key);
  if (status_ && (count < 1 || count > most))
    mistake(*in.get(key), fmt::format("'{}' must be from 1 to {}", key, most));
  return status_ ? count : 0;
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
  const auto gigatransfers = need<double>(in, speed);
  if (status_ && !(gigatransfers > 0 && gigatransfers < 1e4))
    mistake(*in.get(speed), fmt::format("'{}' must be a speed in GT/s", speed));
  device.pcie_speed = known(gigatransfers, kFile);
  device.pcie_lanes = known(static_cast<int>(need_count(in, lanes, 64)), kFile);
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
                       static_cast<int>(need<int64_t>(in, "family")),
                       static_cast<int>(need<int64_t>(in, "model_number"))};
  const auto sockets = need_count(in, "sockets", 64);
  const auto per_socket = need_count(in, "numa_per_socket", 16);
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
  const toml::table& in = table("nvlink", {"links_to_switch", "source"});
  for (size_t i = 0; i < list(in, "links_to_switch").size(); i++)
    nvswitches_.push_back(builder_.see({.kind = DeviceKind::nvswitch}));
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
  if (!number.is_integer()) return mistake(number, "'gpus' must hold numbers");
  gpu.label = fmt::format("gpu{}", number.as_integer()->get());
  gpu.model = known(need<std::string>(in, "model"), kFile);
  gpu.compute_capability =
      known(static_cast<int>(need_count(in, "compute_capability", 1000)), kFile);
  set_pcie(gpu, in, "pcie_gt_s", "pcie_lanes");
  const uint32_t here = builder_.see(gpu);
  for (size_t i = 0; i < nvswitches_.size(); i++) {
    const auto& counts = *root_["nvlink"]["links_to_switch"].as_array();
    const auto count = counts[i].value<int64_t>().value_or(0);
    if (count < 1 || count > 1000) return mistake(counts[i], "must be a number of links");
    builder_.link(here, nvswitches_[i], {LinkType::nvlink, static_cast<uint32_t>(count)});
  }
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
  }
  function.model = known(need<std::string>(in, "model"), kFile);
  set_pcie(function, in, "pcie_gt_s", "pcie_lanes");
  Device port{.kind = DeviceKind::port, .parent = builder_.see(function)};
  port.identity.name = need<std::string>(names, "name");
  port.identity.number = 1;
  const auto rate = gigabits(need<double>(in, "gigabits_per_second"));
  if (!(rate > gigabits(0))) return mistake(in, "'gigabits_per_second' must be above 0");
  port.line_rate = known(rate, kFile);
  builder_.see(port);
}

// toml++ quotes the text it stumbled over, line ends and all.
std::string on_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
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
                on_one_line(error.description()));
  } catch (const std::exception& error) {
    return fail(Code::invalid, "cannot be read as TOML: {}", error.what());
  }
}

}  // namespace crosstie
