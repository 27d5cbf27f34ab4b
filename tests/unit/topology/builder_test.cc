// SPDX-License-Identifier: Apache-2.0
#include "topology/builder.h"

#include <criterion/criterion.h>

#include <set>

#include "knobs.h"
#include "machines.h"
#include "topology/rates.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

Device on_bus(DeviceKind kind, uint8_t bus, uint32_t parent = kNoDevice) {
  Device d{.kind = kind, .parent = parent};
  d.identity.bdf = Bdf{0, bus, 0, 0};
  d.pcie_speed = known(32.0, Provenance::file);
  d.pcie_lanes = known(16, Provenance::file);
  return d;
}

Machine built(Builder&& builder) {
  auto machine = std::move(builder).build();
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

}  // namespace

Test(builder, two_sightings_of_one_address_are_one_device_and_the_better_known_value_stays) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  const uint32_t first = builder.see(on_bus(DeviceKind::gpu, 1, node));
  Device again = on_bus(DeviceKind::gpu, 1);
  again.identity.uuid = "GPU-1";
  again.pcie_lanes = known(8, Provenance::driver);
  cr_assert(builder.see(again) == first);
  const Machine m = built(std::move(builder));
  cr_assert(m.count(DeviceKind::gpu) == 1);
  cr_assert(find(m, "gpu0")->pcie_lanes->value == 8);
  cr_assert(find(m, "gpu0")->identity.uuid == "GPU-1");
  cr_assert(m.gaps().empty());
}

Test(builder, partitions_of_a_gpu_share_its_address_and_stay_apart) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  for (const char* uuid : {"MIG-1", "MIG-2", "MIG-1"}) {
    Device partition = on_bus(DeviceKind::gpu, 1, node);
    partition.identity.uuid = uuid;
    builder.see(partition);
  }
  cr_assert(built(std::move(builder)).count(DeviceKind::gpu) == 2);
}

// Its link is the whole GPU's, above a bridge so slow that what is beneath it is looked at.
Test(builder, a_partition_that_tells_half_of_a_pcie_link_is_as_one_that_tells_none) {
  Builder builder("host", "test");
  Device bridge = on_bus(DeviceKind::pci_switch, 1, builder.see(numa(0)));
  bridge.pcie_speed->value = 2.5;
  const uint32_t whole = builder.see(on_bus(DeviceKind::gpu, 2, builder.see(bridge)));
  Device part = on_bus(DeviceKind::gpu, 3, whole);
  part.pcie_lanes.reset();
  builder.see(part);
  const Machine m = built(std::move(builder));
  cr_assert(!find(m, "gpu1")->pcie_speed);
  cr_assert(has_gap(m, "gpu1", "speed and width"));
}

Test(builder, two_gpus_are_refused_once_whichever_tells) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  const uint32_t a = builder.see(on_bus(DeviceKind::gpu, 1, node));
  const uint32_t b = builder.see(on_bus(DeviceKind::gpu, 2, node));
  builder.refuse(b, a, "one");
  builder.refuse(a, b, "other");
  const Machine m = built(std::move(builder));
  cr_assert(m.refusals().size() == 1 && m.refusals()[0].why == "one");
}

Test(builder, nics_that_share_one_guid_stay_apart) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  for (uint8_t i = 0; i < 8; i++) {
    Device port{.kind = DeviceKind::port, .parent = builder.see(on_bus(DeviceKind::nic, i, node))};
    port.identity.guid = 42;
    port.line_rate = known(gigabits(400), Provenance::driver);
    builder.see(port);
  }
  const Machine m = built(std::move(builder));
  cr_assert(m.count(DeviceKind::nic) == 8);
  cr_assert(m.count(DeviceKind::port) == 8);
}

Test(builder, a_device_of_unknown_numa_node_is_no_island) {
  Builder builder("host", "test");
  builder.see(on_bus(DeviceKind::nic, 1));
  builder.see(numa(0));
  builder.see(numa(1));
  const Machine m = built(std::move(builder));
  cr_assert(m.devices()[find(m, "nic0")->parent].label == "numa0");
  cr_assert(has_gap(m, "nic0", "NUMA node"));
}

// Whatever subset of devices does not know its place, in whatever order they are seen.
Test(builder, any_sightings_make_a_machine_that_keeps_its_promises) {
  Random random = seeded_random();
  constexpr std::array<DeviceKind, 4> kKinds = {DeviceKind::numa, DeviceKind::pci_switch,
                                                DeviceKind::gpu, DeviceKind::nic};
  for (int round = 0; round < rounds(500); round++) {
    Builder builder("host", "test");
    std::vector<uint32_t> containers;
    for (unsigned left = random() % 40; left > 0; left--) {
      const DeviceKind kind = kKinds[random() % kKinds.size()];
      Device d = on_bus(kind, static_cast<uint8_t>(random() % 16));
      if (kind == DeviceKind::numa) d = numa(random() % 4);
      if (kind != DeviceKind::numa && !containers.empty() && random() % 2 == 0)
        d.parent = containers[random() % containers.size()];
      const uint32_t seen = builder.see(d);
      containers.push_back(seen);
      if (kind == DeviceKind::gpu)
        builder.link_to_address(seen, Bdf{0, static_cast<uint8_t>(random() % 20), 0, 0},
                                random() % 2 == 0 ? DeviceKind::gpu : DeviceKind::nvswitch,
                                {LinkType::nvlink, 1 + static_cast<uint32_t>(random() % 4)});
    }
    const auto machine = std::move(builder).build();
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  }
}

Test(builder, a_host_without_numa_nodes_gets_one) {
  Builder builder("host", "test");
  builder.see(on_bus(DeviceKind::gpu, 1));
  const Machine m = built(std::move(builder));
  cr_assert(m.count(DeviceKind::numa) == 1);
  cr_assert(has_gap(m, "numa0", "no NUMA node"));
}

Test(builder, labels_are_unique_whatever_labels_were_given) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  uint8_t bus = 0;
  for (const char* label : {"x", "x", "x#2", "x", "", "gpu0", "gpu0#2", "gpu0"}) {
    Device gpu = on_bus(DeviceKind::gpu, bus++, node);
    gpu.label = label;
    builder.see(gpu);
  }
  const Machine m = built(std::move(builder));
  std::set<std::string_view> labels;
  for (const Device& d : m.devices())
    cr_expect(labels.insert(d.label).second, "%s", d.label.c_str());
  cr_expect(find(m, "x") && find(m, "x#2") && find(m, "x#3"));
}

Test(builder, a_device_cannot_contain_itself) {
  Builder builder("host", "test");
  const uint32_t outer = builder.see(on_bus(DeviceKind::pci_switch, 1));
  const uint32_t inner = builder.see(on_bus(DeviceKind::pci_switch, 2, outer));
  builder.see(on_bus(DeviceKind::pci_switch, 1, inner));
  const Machine m = built(std::move(builder));
  cr_assert(m.count(DeviceKind::pci_switch) == 2);
  cr_assert(has_gap(m, "switch0", "several places"));
}

Test(builder, what_both_ends_tell_of_a_bundle_is_one_and_what_one_end_repeats_adds_up) {
  Builder builder("host", "test");
  const uint32_t node = builder.see(numa(0));
  Device gpu = on_bus(DeviceKind::gpu, 1, node);
  gpu.compute_capability = known(80, Provenance::file);
  const uint32_t a = builder.see(gpu);
  gpu.identity.bdf->bus = 2;
  const uint32_t b = builder.see(gpu);
  builder.link(a, b, {LinkType::nvlink, 2});
  builder.link(a, b, {LinkType::nvlink, 2});
  builder.link(b, a, {LinkType::nvlink, 4});
  const Machine m = built(std::move(builder));
  const Link* const link = find_link(m, "gpu0", "gpu1");
  cr_assert(link->count == 4);
  cr_assert(link->bandwidth->value == gigabytes(80));
  cr_assert(m.gaps().empty());
}

Test(builder, a_link_to_a_gpu_that_is_not_there_is_a_gap_and_to_an_nvswitch_is_a_switch) {
  Builder builder("host", "test");
  const uint32_t gpu = builder.see(on_bus(DeviceKind::gpu, 1, builder.see(numa(0))));
  builder.link_to_address(gpu, Bdf{0, 0xbd, 0, 0}, DeviceKind::gpu, {LinkType::nvlink, 4});
  builder.link_to_address(gpu, Bdf{0, 0xfe, 0, 0}, DeviceKind::nvswitch, {LinkType::nvlink, 18});
  const Machine m = built(std::move(builder));
  cr_assert(has_gap(m, "gpu0", "0000:bd:00.0"));
  cr_assert(find_link(m, "gpu0", "nvswitch0")->count == 18);
  cr_assert(nvlinks(m) == 18);
}

Test(builder, every_pair_of_numa_nodes_is_joined_at_the_rate_of_its_cpu) {
  Builder builder("host", "test");
  for (uint32_t i = 0; i < 4; i++) {
    Device node = numa(i);
    node.cpu = known(CpuModel{"x86_64", "GenuineIntel", 6, 0xcf}, Provenance::file);
    builder.see(node);
  }
  const Machine m = built(std::move(builder));
  cr_assert(m.links().size() == 6);
  for (const Link& link : m.links()) cr_assert(link.bandwidth->value == gigabytes(40));
}

Test(builder, an_unknown_cpu_is_taken_for_one_like_its_neighbour_and_said_to_be_unknown) {
  Builder builder("host", "test");
  Device node = numa(0);
  builder.see(numa(1));
  node.cpu = known(CpuModel{"x86_64", "AuthenticAMD", 25, 1}, Provenance::file);
  builder.see(node);
  const Machine m = built(std::move(builder));
  cr_assert(find_link(m, "numa0", "numa1")->bandwidth->value == gigabytes(16));
  cr_assert(has_gap(m, "numa1", "its CPU"));
}

Test(builder, too_many_numa_nodes_are_refused) {
  Builder builder("host", "test");
  for (uint32_t i = 0; i < 300; i++) builder.see(numa(i));
  cr_assert(std::move(builder).build().error().code == Code::unsupported);
}

Test(rates, pcie_carries_what_nccl_counts_with) {
  cr_assert_float_eq(pcie_bandwidth(8, 16).bytes_per_second, 12e9, 1);
  cr_assert_float_eq(pcie_bandwidth(32, 16).bytes_per_second, 48e9, 1);
  cr_assert_float_eq(pcie_bandwidth(64, 16).bytes_per_second, 96e9, 1);
  cr_assert_float_eq(pcie_bandwidth(5, 16).bytes_per_second, 6e9, 1);
  cr_assert_float_eq(pcie_bandwidth(2.5, 1).bytes_per_second, 0.1875e9, 1);
}

Test(rates, an_nvlink_carries_what_its_generation_does) {
  cr_assert(nvlink_bandwidth(80) == gigabytes(20));
  cr_assert(nvlink_bandwidth(86) == gigabytes(12));
  cr_assert(nvlink_bandwidth(90) == gigabytes(20.6));
  cr_assert(nvlink_bandwidth(100) == gigabytes(40.1));
}

Test(rates, an_unknown_cpu_has_no_rate) {
  cr_assert_not(sys_bandwidth({"x86_64", "GenuineIntel", 15, 1}).has_value());
  cr_assert_not(sys_bandwidth({"riscv64", "", 0, 0}).has_value());
  cr_assert(*sys_bandwidth({"arm64", "", 0, 0}) == gigabytes(6));
  cr_assert(*sys_bandwidth({"x86_64", "CentaurHauls", 7, 0x3b}) == gigabytes(6));
  cr_assert(*sys_bandwidth({"x86_64", "  Shanghai  ", 7, 0x5b}) == gigabytes(9));
}
