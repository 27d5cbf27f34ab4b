// SPDX-License-Identifier: Apache-2.0
// RDMA ports as verbs tells them.
#include <endian.h>

#include <cerrno>
#include <system_error>

#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

constexpr Provenance kDriver = Provenance::driver;

// Gb/s a lane, by the encodings of ibv_port_attr (InfiniBand's names: SDR, DDR, QDR, FDR10, FDR,
// EDR, HDR, NDR, XDR).
double lane_rate(uint8_t active_speed) {
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

bool see_port(Builder& builder, const Verbs& verbs, ibv_context* context, Device port) {
  const auto number = static_cast<uint8_t>(*port.identity.number);
  ibv_port_attr attributes;
  if (query_port(verbs, context, number, attributes) != 0) return false;
  const double gigabits_per_second =
      lane_rate(attributes.active_speed) * lanes(attributes.active_width);
  const bool up = attributes.state == IBV_PORT_ACTIVE;
  if (up && gigabits_per_second > 0) port.line_rate = known(gigabits(gigabits_per_second), kDriver);
  ibv_gid gid{};
  if (verbs.query_gid(context, number, 0, &gid) == 0)
    port.identity.guid = be64toh(gid.global.interface_id);
  const uint32_t index = builder.see(port);
  if (!up) builder.gap(index, "its link is not active");
  return true;
}

// Whether any port was seen.
bool see_device(Builder& builder, const Verbs& verbs, ibv_device* device, uint32_t nic) {
  const std::string name = verbs.get_device_name(device);
  const RdmaDevice open(verbs, device);
  ibv_device_attr attributes{};
  if (open.get() == nullptr || verbs.query_device(open.get(), &attributes) != 0) {
    builder.gap(name, "the RDMA device cannot be opened; /dev/infiniband may be out of reach");
    return false;
  }
  bool any = false;
  for (uint8_t i = 1; i <= attributes.phys_port_cnt; i++) {
    Device port{.kind = DeviceKind::port, .parent = nic};
    port.identity.name = name;
    port.identity.number = i;
    if (see_port(builder, verbs, open.get(), port))
      any = true;
    else
      builder.gap(name, fmt::format("port {} does not answer", i));
  }
  return any;
}

}  // namespace

std::set<uint32_t> see_rdma_ports(Builder& builder, const Verbs& verbs,
                                  const std::filesystem::path& sysfs, const NicNames& names) {
  std::set<uint32_t> seen;
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  if (list == nullptr) {
    const int number = errno;
    builder.gap("verbs", "lists no RDMA devices: " + std::system_category().message(number),
                "none");
    return seen;
  }
  for (int i = 0; i < count; i++) {
    if (names.shared.contains(verbs.get_device_name(list[i]))) continue;
    const uint32_t nic = find_nic(builder, verbs.get_device_name(list[i]), sysfs, names);
    if (see_device(builder, verbs, list[i], nic)) seen.insert(nic);
  }
  verbs.free_device_list(list);
  return seen;
}

}  // namespace crosstie::probe
