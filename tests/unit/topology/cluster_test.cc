// SPDX-License-Identifier: Apache-2.0
#include "topology/cluster.h"

#include <criterion/criterion.h>

#include <algorithm>

#include "machines.h"
#include "topology/builder.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

struct Facts {
  std::string uuid{};
  uint64_t guid = 0;
  std::string fabric{};
  int lanes = 16;
  bool second_gpu = false;
  double gpu_speed_now = 32.0;
  bool all_tell_fabric = true;
};

// A host of one GPU on an NVSwitch, and one NIC.
Topology host(const std::string& name, const Facts& facts) {
  Builder builder(name, name + ".xml");
  const uint32_t numa = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
  const uint32_t hub = builder.see({.kind = DeviceKind::nvswitch});
  for (uint8_t i = 0; i < (facts.second_gpu ? 2 : 1); i++) {
    Device gpu{.kind = DeviceKind::gpu, .parent = numa};
    gpu.identity.bdf = Bdf{0, static_cast<uint8_t>(0x10 + i), 0, 0};
    if (!facts.uuid.empty()) gpu.identity.uuid = facts.uuid + std::to_string(i);
    gpu.compute_capability = known(90, Provenance::driver);
    gpu.pcie_speed = known(32.0, Provenance::measured);
    gpu.pcie_lanes = known(facts.lanes, Provenance::measured);
    gpu.pcie_speed_now = known(facts.gpu_speed_now, Provenance::driver);
    if (!facts.fabric.empty() && (i == 0 || facts.all_tell_fabric))
      gpu.fabric = known(FabricClique{facts.fabric, 1}, Provenance::driver);
    builder.link(builder.see(gpu), hub, {LinkType::nvlink, 18});
  }
  Device nic{.kind = DeviceKind::nic, .parent = numa};
  nic.identity.bdf = Bdf{0, 0x20, 0, 0};
  nic.sys_image_guid = known(facts.guid, Provenance::driver);
  Device port{.kind = DeviceKind::port, .parent = builder.see(nic)};
  port.identity = {.guid = facts.guid, .number = 1, .name = "mlx5_0"};
  port.line_rate = known(gigabits(400), Provenance::measured);
  port.elements = {"<odd/>"};
  builder.see(port);
  return single_host(*std::move(builder).build());
}

// A host of one GPU in partitions.
Topology partitioned(const std::string& name, bool numbered) {
  Builder builder(name, name + ".xml");
  const uint32_t numa = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
  Device gpu{.kind = DeviceKind::gpu, .parent = numa};
  gpu.identity = {.bdf = Bdf{0, 0x10, 0, 0}, .uuid = "GPU-" + name};
  const uint32_t whole = builder.see(gpu);
  for (uint32_t slot = 0; slot < 2; slot++) {
    gpu.parent = whole;
    gpu.identity.uuid = fmt::format("MIG-{}-{}", name, slot);
    if (numbered) gpu.identity.number = slot;
    builder.see(gpu);
  }
  return single_host(*std::move(builder).build());
}

const std::string kFabric = "3143b15b-c2cd-192b-28cc-9b5473fb5b93";
constexpr uint64_t kGuid = 0xa088c2030051a100;

}  // namespace

Test(cluster, hosts_that_differ_in_identity_alone_share_a_machine_and_keep_what_is_theirs) {
  const Topology both = merge({host("a", {.uuid = "GPU-a", .guid = kGuid}),
                               host("b", {.uuid = "GPU-b", .guid = kGuid + 1})});
  cr_assert(both.hosts.size() == 2 && both.hosts[0].machine == both.hosts[1].machine);
  const Device& gpu = *find(*both.hosts[0].machine, "gpu0");
  cr_assert(gpu.identity.uuid.empty(), "the Machine tells nothing that holds of one host alone");
  for (const Host& h : both.hosts) {
    cr_assert(h.units.size() == 3);
    cr_assert(std::ranges::count(h.units, "GPU-" + h.name + "0", &Unit::uuid) == 1);
  }
}

Test(cluster, a_fact_that_differs_makes_another_kind) {
  const Topology both =
      merge({host("a", {.guid = kGuid}), host("b", {.guid = kGuid + 1, .lanes = 8})});
  cr_assert(both.hosts[0].machine != both.hosts[1].machine);
  cr_assert(both.hosts[0].units.empty() && both.hosts[1].units.empty());
}

Test(cluster, hosts_whose_gpus_are_idle_are_of_the_kind_of_those_at_work) {
  const Topology both =
      merge({host("a", {.guid = kGuid}), host("b", {.guid = kGuid + 1, .gpu_speed_now = 2.5})});
  cr_assert(both.hosts[0].machine == both.hosts[1].machine);
}

Test(cluster, merging_again_changes_nothing) {
  const std::vector<Topology> parts = {host("a", {.uuid = "GPU-a", .guid = kGuid}),
                                       host("b", {.uuid = "GPU-b", .guid = kGuid + 1})};
  const Topology once = merge(parts);
  for (const Topology& again : {merge({once}), merge({once, once}), merge({once, parts[1]}),
                                merge({parts[0], once}), merge({parts[0], parts[0], parts[1]})}) {
    cr_assert(again.hosts.size() == 2, "%zu", again.hosts.size());
    for (size_t i = 0; i < 2; i++) {
      cr_assert(again.hosts[i].name == once.hosts[i].name);
      cr_assert(again.hosts[i].units == once.hosts[i].units);
      cr_assert(same_kind(*again.hosts[i].machine, *once.hosts[i].machine));
    }
  }
}

Test(cluster, what_ranks_of_one_host_saw_each_is_one_host) {
  const Topology whole = merge({host("a", {.uuid = "GPU-a", .guid = kGuid}),
                                host("a", {.uuid = "GPU-a", .guid = kGuid, .second_gpu = true})});
  cr_assert(whole.hosts.size() == 1);
  const Machine& machine = *whole.hosts[0].machine;
  cr_assert(machine.count(DeviceKind::gpu) == 2 && machine.count(DeviceKind::port) == 1);
  cr_assert(find_link(machine, "gpu0", "nvswitch0")->count == 18, "told twice, counted once");
}

Test(cluster, hosts_without_any_identity_are_told_apart_by_name_and_source) {
  const Topology two = merge({host("a", {}), host("b", {})});
  cr_assert(two.hosts.size() == 2 && two.hosts[0].machine == two.hosts[1].machine);
  cr_assert(merge({host("a", {}), host("a", {})}).hosts.size() == 1);
}

Test(cluster, a_second_host_of_a_name_is_told_apart) {
  const Topology two = merge({host("a", {.guid = kGuid}), host("a", {.guid = kGuid + 1})});
  cr_assert(two.hosts.size() == 2 && two.hosts[1].name == "a#2");
}

Test(cluster, hosts_of_one_fabric_clique_are_a_domain) {
  const Topology both = merge({host("a", {.uuid = "GPU-a", .fabric = kFabric}),
                               host("b", {.uuid = "GPU-b", .fabric = kFabric})});
  cr_assert(both.hosts[0].domain == kFabric + "/1" && both.hosts[1].domain == kFabric + "/1");
  cr_assert(both.hosts[0].machine == both.hosts[1].machine);
  cr_assert(!both.gaps.empty() && both.gaps[0].missing.find("not tried") != std::string::npos);
}

Test(cluster, a_fabric_of_zeros_is_none) {
  const std::string zero = "00000000-0000-0000-0000-000000000000";
  const Topology both = merge(
      {host("a", {.uuid = "GPU-a", .fabric = zero}), host("b", {.uuid = "GPU-b", .fabric = zero})});
  cr_assert(both.hosts[0].domain.empty() && both.gaps.empty());
}

Test(cluster, a_gpu_that_tells_of_no_fabric_keeps_its_host_out_of_the_domain) {
  const auto part = [](const std::string& name) {
    return host(
        name,
        {.uuid = "GPU-" + name, .fabric = kFabric, .second_gpu = true, .all_tell_fabric = false});
  };
  const Topology both = merge({part("a"), part("b")});
  cr_assert(both.hosts[0].domain.empty() && both.hosts[1].domain.empty());
}

Test(cluster, what_is_seen_again_is_not_doubled_and_its_cabling_is_kept) {
  for (const bool second_gpu : {false, true})
    for (const bool first_tells : {false, true}) {
      Topology a = host("a", {.uuid = "GPU-a", .guid = kGuid});
      Topology b = host("a", {.uuid = "GPU-a", .guid = kGuid, .second_gpu = second_gpu});
      Topology& telling = first_tells ? a : b;
      telling.leaves = {{"x", 0}};
      telling.hosts[0].leaves = {0};
      const Topology whole = merge({a, b});
      cr_assert(whole.hosts.size() == 1 && whole.leaves.size() == 1);
      cr_assert(whole.hosts[0].leaves == std::vector<uint32_t>{0});
      cr_assert(find(*whole.hosts[0].machine, "mlx5_0")->elements.size() == 1);
    }
}

Test(cluster, leaves_of_one_name_are_one) {
  Topology a = host("a", {.guid = kGuid}), b = host("b", {.guid = kGuid + 1});
  a.leaves = {{"x", 0}, {"y", 1}};
  a.hosts[0].leaves = {1};
  b.leaves = {{"y", 1}};
  b.hosts[0].leaves = {0};
  const Topology both = merge({a, b});
  cr_assert(both.leaves.size() == 2);
  cr_assert(both.hosts[0].leaves[0] == 1 && both.hosts[1].leaves[0] == 1);
}

Test(cluster, partitions_are_told_apart_by_their_place_once_their_uuids_are_the_hosts) {
  for (const bool numbered : {true, false}) {
    const Topology both = merge({partitioned("a", numbered), partitioned("b", numbered)});
    cr_assert((both.hosts[0].machine == both.hosts[1].machine) == numbered);
    for (const Host& h : both.hosts) cr_assert(h.machine->count(DeviceKind::gpu) == 2);
    const auto again = read_json(json_text(both));
    cr_assert(again.has_value(), "%s", again ? "" : again.error().text.c_str());
    cr_assert(again->hosts[1].units == both.hosts[1].units);
    const Topology once_more = merge({both, *again, partitioned("b", numbered)});
    cr_assert(once_more.hosts.size() == 2);
    cr_assert(once_more.hosts[1].machine->count(DeviceKind::gpu) == 2);
  }
}
