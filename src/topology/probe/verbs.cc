// SPDX-License-Identifier: Apache-2.0
// RDMA ports as verbs tells them.
#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/name_filter.h"
#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

constexpr Provenance kDriver = Provenance::driver;

// Gb/s a lane, by the encodings of ibv_port_attr (InfiniBand's names: SDR, DDR, QDR, FDR10, FDR,
// EDR, HDR, NDR, XDR).
double lane_rate(uint32_t active_speed) {
  switch (active_speed) {
    case 1:
      return 2.5;
    case 2:
      return 5;
    case 4:
      return 10;
    case 8:
      return 10;
    case 16:
      return 14;
    case 32:
      return 25;
    case 64:
      return 50;
    case 128:
      return 100;
    case 256:
      return 200;
    default:
      return 0;
  }
}

int lanes(uint8_t active_width) {
  switch (active_width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

class RdmaDevice {
 public:
  RdmaDevice(const Verbs& verbs, ibv_device* device)
      : verbs_(verbs), context_(verbs.open_device(device)) {}
  RdmaDevice(const RdmaDevice&) = delete;
  ~RdmaDevice() {
    if (context_ != nullptr) verbs_.close_device(context_);
  }
  ibv_context* get() const { return context_; }

 private:
  const Verbs& verbs_;
  ibv_context* const context_;
};

// The function in whose folder of sysfs the device lies, or that of the network device on which
// soft-RoCE was set up, or none.
uint32_t find_nic(Builder& builder, const std::string& name, const std::filesystem::path& sysfs,
                  const NicNames& names) {
  if (const auto found = names.rdma.find(name); found != names.rdma.end()) return found->second;
  const auto folder = sysfs / "class" / "infiniband" / name;
  const auto parent = names.net.find(read_line(folder / "parent"));
  if (parent != names.net.end()) return parent->second;
  Device nic{.kind = DeviceKind::nic};
  std::error_code none;
  const auto bdf =
      parse_bdf(std::filesystem::canonical(folder / "device", none).filename().native());
  if (bdf) {
    nic.identity.bdf = *bdf;
  } else {
    nic.identity.name = name;
  }
  const uint32_t index = builder.see(nic);
  if (!bdf) builder.gap(index, "it has no PCI function", "it sits by the CPU");
  return index;
}

// Of the port's attributes; what does not mean anything on Ethernet is left out there.
void describe(Device& port, const PortAttributes& attributes) {
  const ibv_port_attr& basic = attributes.basic;
  const double gigabits_per_second =
      lane_rate(attributes.active_speed()) * lanes(basic.active_width);
  // An InfiniBand port has its link before a subnet manager makes it active.
  const bool up = basic.state != IBV_PORT_NOP && basic.state != IBV_PORT_DOWN;
  port.carrier = known(up, kDriver);
  if (up && gigabits_per_second > 0) port.line_rate = known(gigabits(gigabits_per_second), kDriver);
  if (basic.active_mtu >= IBV_MTU_256 && basic.active_mtu <= IBV_MTU_4096)
    port.mtu = known(128 << basic.active_mtu, kDriver);
  if (basic.link_layer == IBV_LINK_LAYER_ETHERNET) {
    port.link_layer = known(std::string("Ethernet"), kDriver);
  } else if (basic.link_layer == IBV_LINK_LAYER_INFINIBAND) {
    port.link_layer = known(std::string("InfiniBand"), kDriver);
    port.lid = known<int>(basic.lid, kDriver);
  }
}

class RdmaPorts {
 public:
  RdmaPorts(Builder& builder, const Verbs& verbs, const std::filesystem::path& sysfs,
            const NicNames& names, const std::string& hcas)
      : builder_(builder),
        verbs_(verbs),
        sysfs_(sysfs),
        names_(names),
        hcas_(hcas),
        filter_(hcas) {}
  std::set<uint32_t> see() &&;

 private:
  void see_device(ibv_device* device);
  void see_port(ibv_context* context, uint32_t nic, const std::string& name, uint8_t number);
  std::vector<Gid> read_gids(ibv_context* context, Device& port, int count) const;
  std::string gid_type(const Device& port, int index) const;
  std::filesystem::path folder_of(const Device& port) const;
  Bond bond_of(const Device& port) const;
  static void add_members(Device& port, const Bond& bond);
  void join(uint32_t nic, uint32_t port, const Bond& bond);

  Builder& builder_;
  const Verbs& verbs_;
  const std::filesystem::path& sysfs_;
  const NicNames& names_;
  const std::string& hcas_;
  const NameFilter filter_;
  std::set<uint32_t> told_;  // NICs
};

std::set<uint32_t> RdmaPorts::see() && {
  int count = 0;
  ibv_device** const list = verbs_.get_device_list(&count);
  if (list == nullptr) {
    const int number = errno;
    builder_.gap("verbs", "lists no RDMA devices: " + std::system_category().message(number),
                 "none");
    return {};
  }
  for (int i = 0; i < count; i++) see_device(list[i]);
  verbs_.free_device_list(list);
  return std::move(told_);
}

void RdmaPorts::see_device(ibv_device* device) {
  const std::string name = verbs_.get_device_name(device);
  if (names_.shared.contains(name)) return;
  const uint32_t nic = find_nic(builder_, name, sysfs_, names_);
  const RdmaDevice open(verbs_, device);
  ibv_device_attr attributes{};
  if (open.get() == nullptr || verbs_.query_device(open.get(), &attributes) != 0)
    return builder_.gap(name,
                        "the RDMA device cannot be opened; /dev/infiniband may be out of reach");
  if (attributes.node_guid != 0)
    builder_.merge(nic, {.node_guid = known(be64toh(attributes.node_guid), kDriver)});
  if (attributes.sys_image_guid != 0)
    builder_.merge(nic, {.sys_image_guid = known(be64toh(attributes.sys_image_guid), kDriver)});
  for (unsigned i = 1; i <= attributes.phys_port_cnt; i++)
    see_port(open.get(), nic, name, static_cast<uint8_t>(i));
}

void RdmaPorts::see_port(ibv_context* context, uint32_t nic, const std::string& name,
                         uint8_t number) {
  const std::string place = fmt::format("{}:{}", name, number);
  PortAttributes attributes;
  if (!filter_.allows(name, number)) {
    told_.insert(nic);
    return builder_.gap(place, fmt::format("CROSSTIE_HCA or NCCL_IB_HCA ({}) leaves it out", hcas_),
                        "no such port");
  }
  if (query_port(verbs_, context, number, attributes) != 0)
    return builder_.gap(name, fmt::format("port {} does not answer", number));
  Device port{.kind = DeviceKind::port, .parent = nic};
  port.identity.name = name;
  port.identity.number = number;
  describe(port, attributes);
  if (auto gids = read_gids(context, port, attributes.basic.gid_tbl_len); !gids.empty())
    port.gids = known(std::move(gids), kDriver);
  const Bond bond = bond_of(port);
  const Property<Bandwidth> told = port.line_rate;
  add_members(port, bond);
  const uint32_t index = builder_.see(port);
  if (port.line_rate != told) builder_.nccl_takes({nic, index, LinkType::net, 1, told});
  told_.insert(nic);
  if (attributes.basic.state != IBV_PORT_ACTIVE) builder_.gap(index, "its link is not active");
  if (!bond.members.empty()) join(nic, index, bond);
}

// The table has holes: entries of zeros, or that are an error to ask for. The port's own GUID and
// its subnet come from the first.
std::vector<Gid> RdmaPorts::read_gids(ibv_context* context, Device& port, int count) const {
  constexpr int kMost = 1024;  // mlx5 has 256
  const bool is_infiniband = port.lid.has_value();
  std::vector<Gid> gids;
  for (int i = 0; i < std::min(count, kMost); i++) {
    ibv_gid gid{};
    if (verbs_.query_gid(context, static_cast<uint8_t>(*port.identity.number), i, &gid) != 0 ||
        gid.global.interface_id == 0)
      continue;
    if (i == 0) port.identity.guid = be64toh(gid.global.interface_id);
    if (i == 0 && is_infiniband)
      port.subnet_prefix = known(be64toh(gid.global.subnet_prefix), kDriver);
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
    gids.push_back({i, text.data(), is_infiniband ? "IB" : gid_type(port, i)});
  }
  return gids;
}

std::filesystem::path RdmaPorts::folder_of(const Device& port) const {
  return sysfs_ / "class" / "infiniband" / port.identity.name / "ports" /
         std::to_string(*port.identity.number);
}

// The kernel's "IB/RoCE v1" is the latter on Ethernet.
std::string RdmaPorts::gid_type(const Device& port, int index) const {
  const std::string type =
      read_line(folder_of(port) / "gid_attrs" / "types" / std::to_string(index));
  return type == "IB/RoCE v1" ? "RoCE v1" : type;
}

Bond RdmaPorts::bond_of(const Device& port) const {
  const std::string net = read_line(folder_of(port) / "gid_attrs" / "ndevs" / "0");
  return net.empty() ? Bond{} : find_bond(sysfs_, net);
}

// All that the members that are up carry together. The driver tells the rate of one of them, which
// NCCL believes, some newer ones that of all.
void RdmaPorts::add_members(Device& port, const Bond& bond) {
  if (!bond.is_shared || !port.line_rate || bond.up < 2) return;
  Bandwidth rate = port.line_rate->value;
  if (rate >= bond.rate && bond.rate != Bandwidth{}) return;
  rate.bytes_per_second *= static_cast<double>(bond.up);
  port.line_rate = known(rate, Provenance::assumed);
}

void RdmaPorts::join(uint32_t nic, uint32_t port, const Bond& bond) {
  builder_.merge(nic, {.bond_members = known(static_cast<int>(bond.members.size()), kDriver)});
  for (const auto& member : bond.members)
    if (const auto found = names_.net.find(member); found != names_.net.end())
      told_.insert(found->second);
  const std::string what = fmt::format("it is a bond of {} ports ({})", bond.members.size(),
                                       fmt::join(bond.members, ", "));
  const auto& rate = builder_.device(port).line_rate;
  if (!bond.is_shared)
    builder_.gap(port, what + ", which carry no more than one of them");
  else if (bond.up < 2)
    builder_.gap(port, what + fmt::format(", of which {} is up", bond.up));
  else if (rate)
    builder_.gap(port, what + "; each queue pair uses one of them",
                 fmt::format("{} with {} queue pairs or more", to_text(rate->value), bond.up));
}

}  // namespace

std::set<uint32_t> see_rdma_ports(Builder& builder, const Verbs& verbs,
                                  const std::filesystem::path& sysfs, const NicNames& names,
                                  const std::string& hcas) {
  return RdmaPorts(builder, verbs, sysfs, names, hcas).see();
}

}  // namespace crosstie::probe
