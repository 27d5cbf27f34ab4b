// SPDX-License-Identifier: Apache-2.0
// What sysfs tells of PCI functions and network devices.
#include <array>
#include <system_error>

#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

namespace fs = std::filesystem;
constexpr Provenance kDriver = Provenance::driver;

fs::path folder_of(const fs::path& sysfs, const Bdf& bdf) {
  return sysfs / "bus" / "pci" / "devices" / to_text(bdf);
}

// "0x15b3".
std::optional<unsigned> read_hex(const fs::path& file) {
  const std::string line = read_line(file);
  if (!line.starts_with("0x")) return std::nullopt;
  return static_cast<unsigned>(std::strtoul(line.c_str(), nullptr, 16));
}

Property<PciIds> read_ids(const fs::path& folder) {
  std::array<uint16_t, 4> ids{};
  size_t i = 0;
  for (const char* file : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
    const auto id = read_hex(folder / file);
    // A bridge has no subsystem.
    if (!id && i < 2) return {};
    ids[i++] = static_cast<uint16_t>(id.value_or(0));
  }
  return known(PciIds{ids[0], ids[1], ids[2], ids[3]}, kDriver);
}

// The present speed misleads where it is low: idle GPUs slow their links.
void describe(Device& d, const fs::path& folder) {
  const double speed = read_number(folder / "current_link_speed");
  const double lanes = read_number(folder / "current_link_width");
  if (speed > 0) d.pcie_speed_now = known(speed, kDriver);
  if (lanes > 0 && lanes <= 32) d.pcie_lanes_now = known(static_cast<int>(lanes), kDriver);
  if (const auto code = read_hex(folder / "class")) d.pci_class = known(*code, kDriver);
  d.pci_ids = read_ids(folder);
}

// Whether a bridge's config space has access control send requests of peers, or their completions,
// to the root: PCI Express base specification, 7.7.11 (ACS). None where it cannot be read, which
// takes root beyond the first 64 bytes.
std::optional<bool> redirects_peers(const fs::path& config) {
  constexpr size_t kBytes = 4096, kFirstExtended = 256;
  constexpr unsigned kAcs = 0x000d, kRedirects = 0x4 | 0x8;
  std::string space(kBytes, '\0');
  std::ifstream in(config, std::ios::binary);
  in.read(space.data(), kBytes);
  const auto have = static_cast<size_t>(in.gcount());
  if (have <= 64) return std::nullopt;
  const auto word = [&](size_t at) {
    return static_cast<uint8_t>(space[at]) | static_cast<uint8_t>(space[at + 1]) << 8;
  };
  size_t at = kFirstExtended;
  for (size_t steps = 0; steps < kBytes / 8 && at >= kFirstExtended && at + 8 <= have; steps++) {
    if (word(at) == kAcs) return (word(at + 6) & kRedirects) != 0;
    at = static_cast<size_t>(word(at + 2)) >> 4 & ~size_t{3};
  }
  return false;
}

// The bridge right above a function, by the folders of sysfs, that of the switch's port.
std::optional<Bdf> bridge_above(const fs::path& folder) {
  std::error_code none;
  const auto bdf = parse_bdf(fs::canonical(folder, none).parent_path().filename().native());
  return bdf ? std::optional(*bdf) : std::nullopt;
}

// Of a switch with what hangs on its ports: access control at one port is felt at the switch.
void see_access_control(Builder& builder, uint32_t pci_switch, std::span<const Bdf> below,
                        const fs::path& sysfs) {
  bool acs = false, read = false;
  for (const Bdf& bdf : below)
    if (const auto port = bridge_above(folder_of(sysfs, bdf)))
      if (const auto redirects = redirects_peers(folder_of(sysfs, *port) / "config")) {
        read = true;
        acs |= *redirects;
      }
  if (read) return builder.merge(pci_switch, {.acs = known(acs, kDriver)});
  builder.gap("PCIe switches",
              "whether access control (ACS) sends their peers' traffic to the CPU could not be "
              "read; root may",
              "it does not");
}

}  // namespace

void see_pci_functions(Builder& builder, const fs::path& sysfs) {
  std::map<uint32_t, std::vector<Bdf>> below;
  for (uint32_t i = 0; i < builder.size(); i++) {
    const Device& d = builder.device(i);
    if (!d.identity.bdf || !on_pci(d.kind)) continue;
    Device more;
    describe(more, folder_of(sysfs, *d.identity.bdf));
    if (d.pci_class) more.pci_class.reset();
    if (d.pci_ids) more.pci_ids.reset();
    if (d.parent != kNoDevice && builder.device(d.parent).kind == DeviceKind::pci_switch)
      below[d.parent].push_back(*d.identity.bdf);
    builder.merge(i, more);
  }
  for (const auto& [pci_switch, devices] : below)
    if (devices.size() > 1) see_access_control(builder, pci_switch, devices, sysfs);
}

void see_net_port(Builder& builder, const fs::path& sysfs, const std::string& name, uint32_t nic) {
  const auto folder = sysfs / "class" / "net" / name;
  Device port{.kind = DeviceKind::port, .parent = nic};
  port.identity.name = name;
  const double megabits = read_number(folder / "speed");
  if (megabits > 0) port.line_rate = known(gigabits(megabits / 1000), kDriver);
  if (const double mtu = read_number(folder / "mtu"); mtu > 0)
    port.mtu = known(static_cast<int>(mtu), kDriver);
  // An interface that is down does not let its carrier be read.
  const std::string carrier = read_line(folder / "carrier");
  if (!carrier.empty() || read_line(folder / "operstate") == "down")
    port.carrier = known(carrier == "1", kDriver);
  if (const auto type = read_number(folder / "type"); type == 1 || type == 32)  // ARPHRD_*
    port.link_layer = known(std::string(type == 1 ? "Ethernet" : "InfiniBand"), kDriver);
  builder.see(port);
}

Bond find_bond(const fs::path& sysfs, const std::string& net) {
  const auto folder = sysfs / "class" / "net";
  Bond bond;
  const std::string mode = read_line(folder / net / "bonding" / "mode");
  bond.is_shared = !mode.starts_with("active-backup") && !mode.starts_with("broadcast");
  std::ifstream slaves(folder / net / "bonding" / "slaves");
  for (std::string member; slaves >> member;) {
    bond.members.push_back(member);
    // A member that is down does not let its carrier be read.
    if (read_line(folder / member / "carrier") != "1") continue;
    bond.up++;
    bond.rate.bytes_per_second +=
        gigabits(read_number(folder / member / "speed") / 1000).bytes_per_second;
  }
  return bond;
}

}  // namespace crosstie::probe
