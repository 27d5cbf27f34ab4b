// SPDX-License-Identifier: Apache-2.0
// Machines of a few lines: switches with GPUs and NICs, in which any device can be made odd.
#pragma once
#include <criterion/criterion.h>

#include <functional>

#include "topology/builder.h"
#include "topology/topology.h"

namespace crosstie::test {

struct Plan {
  struct Switch {
    uint32_t numa = 0;
    uint32_t gpus = 0;
    std::vector<double> ports{};  // Gb/s, one NIC each
    bool bare = false;            // no switch: all sit on the CPU
  };
  uint32_t numas = 1;
  std::vector<Switch> switches{};
  uint32_t nvlinks = 0;                            // of each GPU to the one NVSwitch
  std::string cpu = "GenuineIntel";                // vendor
  std::function<void(Device&)> edit{};             // by label: gpu0, nic0, mlx5_0, switch0, numa0
  std::function<void(Builder&)> finish{};          // what else is to be said
  std::function<uint32_t(uint32_t)> nvlinks_of{};  // of a GPU, in place of `nvlinks`

  Machine build(const char* name = "host") const;

 private:
  uint32_t see(Builder& builder, Device device) const {
    if (edit) edit(device);
    return builder.see(device);
  }
};

inline Device on_pci(DeviceKind kind, std::string label, uint8_t bus, uint32_t parent) {
  Device d{.kind = kind, .parent = parent, .label = std::move(label)};
  d.identity.bdf = Bdf{0, bus, 0, 0};
  d.pcie_speed = known(32.0, Provenance::file);
  d.pcie_lanes = known(16, Provenance::file);
  return d;
}

inline Machine Plan::build(const char* name) const {
  Builder builder(name, "test");
  std::vector<uint32_t> nodes;
  for (uint32_t i = 0; i < numas; i++) {
    Device node{.kind = DeviceKind::numa, .label = fmt::format("numa{}", i)};
    node.identity.number = i;
    node.cpu = known(CpuModel{"x86_64", cpu, 6, 0x8f}, Provenance::file);
    nodes.push_back(see(builder, node));
  }
  uint8_t bus = 1;
  uint32_t gpu = 0, nic = 0;
  for (size_t i = 0; i < switches.size(); i++) {
    const Switch& group = switches[i];
    uint32_t above = nodes[group.numa];
    if (!group.bare)
      above =
          see(builder, on_pci(DeviceKind::pci_switch, fmt::format("switch{}", i), bus++, above));
    for (uint32_t n = 0; n < group.gpus; n++, gpu++) {
      Device device = on_pci(DeviceKind::gpu, fmt::format("gpu{}", gpu), bus++, above);
      device.compute_capability = known(90, Provenance::file);
      const uint32_t seen = see(builder, device);
      if (const uint32_t count = nvlinks_of ? nvlinks_of(gpu) : nvlinks)
        builder.link_to_address(seen, Bdf{0, 0xfe, 0, 0}, DeviceKind::nvswitch,
                                {LinkType::nvlink, count});
    }
    for (const double rate : group.ports) {
      const uint32_t card =
          see(builder, on_pci(DeviceKind::nic, fmt::format("nic{}", nic), bus++, above));
      Device port{.kind = DeviceKind::port, .parent = card, .label = fmt::format("mlx5_{}", nic)};
      port.identity.name = port.label;
      port.identity.number = 1;
      port.identity.guid = 0xa000 + nic++;
      port.line_rate = known(gigabits(rate), Provenance::file);
      see(builder, port);
    }
  }
  if (finish) finish(builder);
  auto machine = std::move(builder).build();
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

// Changes one device of a plan.
inline std::function<void(Device&)> change(std::string label, std::function<void(Device&)> how) {
  return [label = std::move(label), how = std::move(how)](Device& d) {
    if (d.label == label) how(d);
  };
}

// Two sockets with two switches each, two GPUs and two 400 Gb/s NICs behind each, NVLink between.
inline Plan usual_plan() {
  return {
      .numas = 2,
      .switches = {{0, 2, {400, 400}}, {0, 2, {400, 400}}, {1, 2, {400, 400}}, {1, 2, {400, 400}}},
      .nvlinks = 18};
}

// The same with one more bridge, switch9, above nic0.
inline Plan extra_bridge_plan() {
  Plan plan = usual_plan();
  plan.edit = change("nic0", [](Device& d) { d.parent = kNoDevice; });
  plan.finish = [](Builder& builder) {
    const uint32_t above = builder.see(on_pci(DeviceKind::pci_switch, "", 1, kNoDevice));
    const uint32_t extra = builder.see(on_pci(DeviceKind::pci_switch, "switch9", 0x60, above));
    builder.see(on_pci(DeviceKind::nic, "", 4, extra));
  };
  return plan;
}

}  // namespace crosstie::test
