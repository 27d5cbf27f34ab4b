// SPDX-License-Identifier: Apache-2.0
// What sysfs tells of PCI functions, through one made up.
#include <criterion/criterion.h>

#include "../../fake/sysfs.h"
#include "machines.h"
#include "topology/probe/seeing.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// A config space whose first extended capability is AER, and the second ACS with this control.
std::string config_with_acs(unsigned control) {
  std::string space(4096, '\0');
  const auto put = [&](size_t at, unsigned value) {
    for (size_t i = 0; i < 4; i++) space[at + i] = static_cast<char>(value >> 8 * i);
  };
  put(0x100, 0x0001 | 1 << 16 | 0x148u << 20);
  put(0x148, 0x000d | 1 << 16 | 0u << 20);
  put(0x14c, control << 16 | 0x5f);
  return space;
}

// A switch (19:00.0) whose ports 1a:00.0 and 1a:01.0 hold a GPU and a NIC.
struct Host {
  Host() {
    sysfs.pci("0000:18:01.0", "0000:19:00.0");
    for (const char* port : {"0000:1a:00.0", "0000:1a:01.0"})
      sysfs.pci("0000:18:01.0/0000:19:00.0", port);
    sysfs.pci("0000:18:01.0/0000:19:00.0/0000:1a:00.0", "0000:1b:00.0");
    sysfs.pci("0000:18:01.0/0000:19:00.0/0000:1a:01.0", "0000:1c:00.0");
  }
  void write(const std::string& bdf, const std::string& file, const std::string& text) const {
    sysfs.write("bus/pci/devices/" + bdf + "/" + file, text);
  }

  Machine look() const {
    Builder builder("here", "test");
    Device node{.kind = DeviceKind::numa};
    node.identity.number = 0;
    const auto on_bus = [&](DeviceKind kind, uint8_t bus, uint32_t parent) {
      Device d{.kind = kind, .parent = parent};
      d.identity.bdf = Bdf{0, bus, 0, 0};
      return builder.see(d);
    };
    const uint32_t top = on_bus(DeviceKind::pci_switch, 0x19, builder.see(node));
    on_bus(DeviceKind::gpu, 0x1b, top);
    on_bus(DeviceKind::nic, 0x1c, top);
    probe::see_pci_functions(builder, sysfs.root);
    auto machine = std::move(builder).build();
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
    return std::move(*machine);
  }

  fake::Sysfs sysfs;
};

}  // namespace

Test(sysfs, a_function_tells_its_present_link_and_what_it_is) {
  const Host host;
  host.write("0000:1c:00.0", "current_link_speed", "16.0 GT/s PCIe\n");
  host.write("0000:1c:00.0", "current_link_width", "8\n");
  host.write("0000:1c:00.0", "class", "0x020700\n");
  for (const char* file : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
    host.write("0000:1c:00.0", file, "0x15b3\n");
  host.write("0000:1b:00.0", "current_link_speed", "Unknown\n");
  host.write("0000:1b:00.0", "current_link_width", "255\n");
  const Machine m = host.look();
  const Device& nic = *find(m, "nic0");
  cr_assert(nic.pcie_speed_now->value == 16 && nic.pcie_lanes_now->value == 8);
  cr_assert(nic.pci_class->value == 0x020700);
  cr_assert(nic.pci_ids->value == (PciIds{0x15b3, 0x15b3, 0x15b3, 0x15b3}));
  cr_assert(!find(m, "gpu0")->pcie_speed_now && !find(m, "gpu0")->pcie_lanes_now);
}

Test(sysfs, access_control_at_a_port_is_felt_at_its_switch) {
  const Host host;
  host.write("0000:1a:00.0", "config", config_with_acs(0));
  host.write("0000:1a:01.0", "config", config_with_acs(0x1));  // source validation alone
  cr_assert(!find(host.look(), "switch0")->acs->value);
  host.write("0000:1a:01.0", "config", config_with_acs(0x1d));
  cr_assert(find(host.look(), "switch0")->acs->value);
  cr_assert_not(has_gap(host.look(), "PCIe switches", "access control"));
}

Test(sysfs, access_control_that_cannot_be_read_is_a_gap) {
  const Host host;
  const std::string head = config_with_acs(0x1d).substr(0, 64);  // what others than root get
  host.write("0000:1a:00.0", "config", head);
  host.write("0000:1a:01.0", "config", head);
  cr_assert(!find(host.look(), "switch0")->acs);
  cr_assert(has_gap(host.look(), "PCIe switches", "access control"));
}

Test(sysfs, a_broken_list_of_capabilities_ends) {
  const Host host;
  std::string space = config_with_acs(0x1d);
  space[0x148] = 0x0e;                    // no ACS
  space[0x14b] = 0x10, space[0x14a] = 1;  // and the first is next again
  host.write("0000:1a:00.0", "config", space);
  host.write("0000:1a:01.0", "config", std::string(4096, '\xff'));
  cr_assert(!find(host.look(), "switch0")->acs->value);
}
