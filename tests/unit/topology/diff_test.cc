// SPDX-License-Identifier: Apache-2.0
#include "topology/diff.h"

#include "plan.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

using Differences = std::vector<Difference>;

std::string text(const Differences& differences) { return differences_text(differences, "A", "B"); }

Differences between(const Plan& a, const Plan& b) { return diff(a.build(), b.build()); }

void expect(const Differences& got, const std::string& expected) {
  cr_expect(text(got) == expected, "%s\nnot\n%s", text(got).c_str(), expected.c_str());
}

Plan with(std::string label, std::function<void(Device&)> how) {
  Plan plan = usual_plan();
  plan.edit = change(std::move(label), std::move(how));
  return plan;
}

Plan without_nics_of_last_switch() {
  Plan plan = usual_plan();
  plan.switches[3].ports.pop_back();
  return plan;
}

}  // namespace

Test(diff, a_machine_is_like_itself) {
  for (const KnownMachine& one : known_machines()) {
    const Topology topology = *read_synthetic(std::string(one.name));
    expect(diff(*topology.hosts[0].machine, *topology.hosts[0].machine), "");
  }
}

Test(diff, a_lost_nic_is_one_difference_whatever_its_ports) {
  const auto lost = between(usual_plan(), without_nics_of_last_switch());
  expect(lost, "device    nic7: nic 0000:14:00.0, with mlx5_7: only in A\n");
  expect(between(without_nics_of_last_switch(), usual_plan()),
         "device    nic7: nic 0000:14:00.0, with mlx5_7: only in B\n");
}

// gpu4 and all after it have another index then.
Test(diff, a_lost_gpu_does_not_make_others_of_those_after_it) {
  Plan fewer = usual_plan();
  fewer.edit = [](Device& d) {
    // What was gpu2 is not there: the bus number of each stays.
    if (d.kind == DeviceKind::gpu && d.label >= "gpu3")
      d.label = fmt::format("gpu{}", d.label.back() - '1');
    else if (d.label == "gpu2")
      d.kind = DeviceKind::pci_switch, d.label = "was2";
  };
  fewer.nvlinks = 0;
  Plan all = usual_plan();
  all.nvlinks = 0;
  const auto got = between(all, fewer);
  cr_assert(got[0].kind == DifferenceKind::device && got[0].device == "gpu2", "%s",
            text(got).c_str());
  cr_assert(got.size() == 2, "%s", text(got).c_str());
}

Test(diff, fewer_nvlinks_are_a_link_that_is_slower) {
  Plan fewer = usual_plan();
  fewer.nvlinks_of = [](uint32_t gpu) { return gpu == 3 ? 17u : 18u; };
  expect(between(usual_plan(), fewer),
         "link      gpu3: nvlink to nvswitch0: 18x 371 GB/s -> 17x 350 GB/s\n");
}

Test(diff, an_nvlink_that_is_gone_tells_what_is_farther_for_it) {
  Plan without = usual_plan();
  without.nvlinks_of = [](uint32_t gpu) { return gpu == 0 ? 0u : 18u; };
  const auto got = between(usual_plan(), without);
  cr_assert(got.size() == 1 && got[0].kind == DifferenceKind::link, "%s", text(got).c_str());
  cr_assert(got[0].second.empty());
  cr_assert(got[0].effects[0] == "gpu0 - gpu1: NVL -> PIX", "%s", text(got).c_str());
  // NCCL's view: other GPUs relay for it no more.
  const auto relay = std::ranges::find(got[0].effects, "gpu0 - mlx5_2: PXN -> PHB");
  cr_assert(relay != got[0].effects.end(), "%s", text(got).c_str());
}

Test(diff, an_extra_bridge_above_a_nic_is_just_that) {
  const auto got = between(usual_plan(), extra_bridge_plan());
  expect(got,
         "path      switch9: pci-switch 0000:60:00.0, with nic0, mlx5_0: only in B\n"
         "            gpu0 - mlx5_0: PIX -> PXB\n"
         "            gpu1 - mlx5_0: PIX -> PXB\n"
         "            gpu2 - mlx5_0: PXN -> PHB\n"
         "            gpu3 - mlx5_0: PXN -> PHB\n"
         "            and 4 more\n");
}

// The bridge takes a bus number, and all behind it move up by one.
Test(diff, bus_numbers_that_moved_are_no_difference) {
  Plan moved = extra_bridge_plan();
  const auto edit = moved.edit;
  moved.edit = [edit](Device& d) {
    edit(d);
    if (d.label == "nic1") d.identity.bdf->bus = 0x61;
  };
  const auto got = between(usual_plan(), moved);
  cr_assert(got.size() == 1, "%s", text(got).c_str());
}

Test(diff, a_nic_in_another_place) {
  Plan moved = usual_plan();
  moved.edit = change("nic1", [](Device& d) { d.parent = kNoDevice; });
  moved.finish = [](Builder& builder) {
    const uint32_t other = builder.see(on_pci(DeviceKind::pci_switch, "", 6, kNoDevice));
    builder.see(on_pci(DeviceKind::nic, "", 5, other));
  };
  const auto got = between(usual_plan(), moved);
  cr_assert(got.size() == 1 && got[0].device == "nic1" && got[0].first == "in switch0" &&
                got[0].second == "in switch1",
            "%s", text(got).c_str());
  cr_assert(got[0].effects.size() == 4);
}

Test(diff, a_property_that_changed_and_who_says_so) {
  const auto mtu = [](int bytes) {
    return with("mlx5_0", [bytes](Device& d) { d.mtu = known(bytes, Provenance::driver); });
  };
  expect(between(mtu(4096), mtu(1024)), "property  mlx5_0: MTU: 4096 -> 1024\n");
  // Known to one only, or known in another way: no difference of the machines.
  expect(between(usual_plan(), mtu(1024)), "");
  expect(between(mtu(1024),
                 with("mlx5_0", [](Device& d) { d.mtu = known(1024, Provenance::measured); })),
         "");
}

Test(diff, what_makes_links_slower_comes_before_other_properties) {
  Plan worse = usual_plan();
  worse.edit = [](Device& d) {
    if (d.label == "gpu0") d.compute_capability = known(89, Provenance::file);
    if (d.label == "nic7") d.pcie_lanes = known(8, Provenance::file);
  };
  Plan better = usual_plan();
  better.nvlinks = worse.nvlinks = 0;
  expect(between(better, worse),
         "link      nic7: PCIe lanes: 16 -> 8\n"
         "property  gpu0: compute capability: 90 -> 89\n");
}

Test(diff, lost_nvlinks_come_before_pcie) {
  Plan worse = usual_plan();
  worse.edit = change("switch0", [](Device& d) { d.pcie_lanes = known(8, Provenance::file); });
  worse.nvlinks_of = [](uint32_t gpu) { return gpu == 7 ? 0u : 18u; };
  const auto got = between(usual_plan(), worse);
  cr_assert(got.size() == 2 && got[0].device == "gpu7" && got[1].what == "pcie_lanes", "%s",
            text(got).c_str());
}

Test(diff, an_idle_gpus_speed_is_no_difference) {
  const auto speed = [](const char* label, double now) {
    return with(label, [now](Device& d) { d.pcie_speed_now = known(now, Provenance::driver); });
  };
  expect(between(speed("gpu0", 32), speed("gpu0", 2.5)), "");
  cr_assert(between(speed("nic0", 32), speed("nic0", 2.5)).size() == 1);
}

Test(diff, identities_count_only_on_one_and_the_same_host) {
  const auto host = [](int serial, int of_gpu1) {
    Plan plan = usual_plan();
    plan.edit = [=](Device& d) {
      if (d.kind == DeviceKind::port) d.identity.guid = *d.identity.guid + serial;
      if (d.kind == DeviceKind::gpu) d.identity.uuid = fmt::format("GPU-{}-{}", serial, d.label);
      if (d.label == "gpu1") d.identity.uuid += fmt::format("-{}", of_gpu1);
      if (d.label == "mlx5_0") d.lid = known(serial + of_gpu1, Provenance::driver);
    };
    return plan;
  };
  expect(between(host(0, 0), host(1000, 0)), "");
  const auto replaced = between(host(0, 0), host(0, 1));
  expect(replaced,
         "device    gpu1: uuid: GPU-0-gpu1-0 -> GPU-0-gpu1-1\n"
         "property  mlx5_0: LID: 0 -> 1\n");
}

// As after a rule of udev was changed.
Test(diff, names_and_numbers_are_compared_on_one_and_the_same_host) {
  const auto host = [](bool changed) {
    Plan plan = usual_plan();
    plan.edit = [=](Device& d) {
      if (d.kind == DeviceKind::gpu) d.identity.uuid = "GPU-" + d.label;
      if (!changed) return;
      if (d.label == "numa1") d.identity.number = 2;
      if (d.label == "mlx5_0") d.identity.name = "mlx5_9";
    };
    return plan;
  };
  expect(between(host(false), host(true)),
         "property  mlx5_0: name: mlx5_0 -> mlx5_9\n"
         "property  numa1: number: 1 -> 2\n");
}

Test(diff, a_gpu_that_swapped_its_slot_is_known_by_its_uuid) {
  const auto host = [](bool swapped) {
    Plan plan = usual_plan();
    plan.edit = [=](Device& d) {
      if (d.kind == DeviceKind::gpu) d.identity.uuid = "GPU-" + d.label;
      if (swapped && d.label == "gpu0") d.identity.uuid = "GPU-gpu7";
      if (swapped && d.label == "gpu7") d.identity.uuid = "GPU-gpu0";
    };
    return plan;
  };
  const auto got = between(host(false), host(true));
  cr_assert(got.size() == 2 && got[0].what == "its place" && got[1].what == "its place", "%s",
            text(got).c_str());
}

namespace {

Topology of_hosts(const std::vector<std::pair<std::string, Machine>>& hosts) {
  Topology out;
  for (const auto& [name, machine] : hosts)
    out.hosts.push_back({name, std::make_shared<const Machine>(machine)});
  return out;
}

}  // namespace

Test(diff, hosts_are_known_by_name_and_a_lost_one_comes_first) {
  const Machine whole = usual_plan().build(), worse = without_nics_of_last_switch().build();
  const auto got = diff(of_hosts({{"a", whole}, {"b", whole}}), of_hosts({{"b", worse}}));
  expect(got,
         "host      a: host: only in A\n"
         "device    b: nic7: nic 0000:14:00.0, with mlx5_7: only in A\n");
}

Test(diff, two_hosts_of_other_names_are_compared) {
  const Machine whole = usual_plan().build(), worse = without_nics_of_last_switch().build();
  cr_assert(diff(of_hosts({{"a", whole}}), of_hosts({{"b", worse}})).size() == 1);
}

Test(diff, hosts_that_share_machines_are_compared_once) {
  Topology first, second;
  const auto whole = std::make_shared<const Machine>(usual_plan().build());
  const auto worse = std::make_shared<const Machine>(without_nics_of_last_switch().build());
  for (int i = 0; i < 20; i++) {
    first.hosts.push_back({fmt::format("a{}", i), whole});
    second.hosts.push_back({fmt::format("a{}", i), worse});
  }
  const auto got = diff(first, second);
  cr_assert(got.size() == 1 && got[0].hosts.size() == 20);
  cr_assert(text(got).find("a0 and 19 more: nic7") != std::string::npos);
}

Test(diff, a_cable_in_another_leaf) {
  Topology first = single_host(usual_plan().build()), second = first;
  first.leaves = second.leaves = {{"leaf0", {}}, {"leaf1", {}}};
  first.hosts[0].leaves = second.hosts[0].leaves = {0, 1, 0, 1, 0, 1, 0, 1};
  second.hosts[0].leaves[2] = 1;
  const auto got = diff(first, second);
  cr_assert(got.size() == 1 && got[0].device == "mlx5_2" && got[0].second == "leaf1");
}
