// SPDX-License-Identifier: Apache-2.0
#include "topology/check.h"

#include "machines.h"
#include "plan.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

using Findings = std::vector<Finding>;

std::string text(const Findings& findings) { return findings_text(findings); }

// Every finding says why we think so, and what to do.
Findings checked(const Topology& topology) {
  auto findings = check(topology);
  for (const Finding& f : findings)
    cr_expect(!f.evidence.empty() && !f.advice.empty(), "%s", text({f}).c_str());
  return findings;
}

Findings checked(const Plan& plan) { return checked(single_host(plan.build())); }

const Finding* find(const Findings& findings, std::string_view kind) {
  for (const Finding& f : findings)
    if (f.check == kind) return &f;
  return nullptr;
}

// The one finding that is worse than a note, but for what follows from it.
void expect_only(const Findings& findings, std::string_view kind, Severity severity,
                 const std::vector<std::string>& devices, std::string_view evidence,
                 std::string_view consequence = {}) {
  const Finding* const f = find(findings, kind);
  cr_assert(f != nullptr, "%s", text(findings).c_str());
  cr_expect(f->severity == severity && f->devices == devices, "%s", text(findings).c_str());
  cr_expect(f->evidence.find(evidence) != std::string::npos, "%s", text(findings).c_str());
  cr_expect(!f->what.empty());
  for (const Finding& other : findings)
    cr_expect(&other == f || other.severity == Severity::note || other.check == kind ||
                  other.check == consequence,
              "%s", text(findings).c_str());
}

Plan with(std::string label, std::function<void(Device&)> how) {
  Plan plan = usual_plan();
  plan.edit = change(std::move(label), std::move(how));
  return plan;
}

constexpr auto kDriver = Provenance::driver;

}  // namespace

Test(check, a_sound_host_has_nothing_to_report) {
  const auto findings = checked(usual_plan());
  cr_assert(findings.empty(), "%s", text(findings).c_str());
}

Test(check, the_machines_built_in_are_sound) {
  for (const KnownMachine& one : known_machines()) {
    auto findings = checked(*read_synthetic(std::string(one.name)));
    // What is so by their makers' will.
    std::erase_if(findings, [](const Finding& f) { return f.check == "peer-refused"; });
    cr_expect(is_clean(findings), "%s", text(findings).c_str());
  }
}

Test(check, lost_lanes_are_an_error_of_nic_and_gpu) {
  for (const char* label : {"nic2", "gpu2"}) {
    const auto findings =
        checked(with(label, [](Device& d) { d.pcie_lanes_now = known(4, kDriver); }));
    const Finding* const f = find(findings, "pcie-width");
    cr_assert(f != nullptr && f->severity == Severity::error);
    cr_assert(f->devices == std::vector<std::string>{label} && f->evidence == "x4 of x16");
  }
}

Test(check, a_low_speed_is_an_error_of_a_nic_but_not_of_a_gpu_that_is_idle) {
  const auto slow = [](Device& d) { d.pcie_speed_now = known(8.0, kDriver); };
  const auto findings = checked(with("nic0", slow));
  cr_assert(find(findings, "pcie-speed")->evidence == "8 of 32 GT/s");
  cr_assert(checked(with("gpu0", slow)).empty());
}

Test(check, a_nic_whose_slot_carries_less_than_its_port) {
  const auto half = with("nic1", [](Device& d) { d.pcie_lanes = known(8, kDriver); });
  // Of its two GPUs' nearest ports the other is the faster now.
  expect_only(checked(half), "pcie-below-line-rate", Severity::warning, {"nic1"}, "x8",
              "nic-crowded");
  // 200 Gb/s of PCIe 4 x16 is enough for a port of 200 Gb/s, though not by NCCL's reckoning.
  Plan just = usual_plan();
  for (auto& group : just.switches) group.ports = {200, 200};
  just.edit = [](Device& d) {
    if (d.kind == DeviceKind::nic) d.pcie_speed = known(16.0, kDriver);
  };
  cr_assert(checked(just).empty());
}

Test(check, a_gpu_that_lost_nvlinks) {
  Plan plan = usual_plan();
  plan.nvlinks_of = [](uint32_t gpu) { return gpu == 3 ? 16u : 18u; };
  expect_only(checked(plan), "nvlink-missing", Severity::error, {"gpu3"}, "16 of 18");
  plan.nvlinks_of = [](uint32_t gpu) { return gpu == 3 ? 0u : 18u; };
  expect_only(checked(plan), "nvlink-missing", Severity::error, {"gpu3"}, "0 of 18");
}

Test(check, more_nvlinks_than_there_are) {
  Plan plan = usual_plan();
  plan.nvlinks = 126;
  const auto findings = checked(plan);
  cr_assert(find(findings, "link-unsure")->devices.size() == 8);
  plan.nvlinks = 18;
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::gpu) d.compute_capability = known(80, kDriver);
  };
  expect_only(checked(plan), "link-unsure", Severity::warning,
              {"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"},
              "tells 18 NVLinks where a GPU of its kind has 12");
}

Test(check, a_device_of_unknown_numa_node) {
  expect_only(checked(with("switch1", [](Device& d) { d.parent = kNoDevice; })), "numa-unknown",
              Severity::warning, {"switch1"}, "the first");
}

// As NCCL writes what is beneath numa_node -1, beside a node that is known and alone.
Test(check, a_numa_node_without_a_number_names_what_is_beneath_it) {
  const Plan plan{.numas = 1, .switches = {{0, 1, {}, true}}};
  const auto beneath_another = [](Builder& builder) {
    const uint32_t nowhere = builder.see({.kind = DeviceKind::numa});
    builder.gap(nowhere, "its number is not known", {}, GapAbout::numa_node);
    const uint32_t bridge = builder.see(on_pci(DeviceKind::pci_switch, "bridge", 9, nowhere));
    builder.see(on_pci(DeviceKind::nic, "nic0", 10, bridge));
    builder.see(on_pci(DeviceKind::gpu, "gpu1", 11, bridge));
  };
  Plan beside = plan;
  beside.finish = beneath_another;
  const auto two = checked(beside);
  const Finding* const warned = find(two, "numa-unknown");
  cr_assert(warned != nullptr && warned->severity == Severity::warning, "%s", text(two).c_str());
  cr_expect(warned->devices == (std::vector<std::string>{"nic0", "gpu1"}), "%s", text(two).c_str());
  cr_expect(warned->evidence.find("its number is not known") != std::string::npos);
  cr_expect(warned->advice.find("overlay") != std::string::npos);
  const auto one = checked(Plan{.numas = 0, .finish = beneath_another});
  const Finding* const noted = find(one, "numa-unknown");
  cr_assert(noted != nullptr && noted->severity == Severity::note, "%s", text(one).c_str());
}

// Whatever its words.
Test(check, a_gap_about_a_numa_node_is_found_by_what_it_is_about) {
  Machine::Parts parts = usual_plan().build().parts();
  parts.gaps.push_back({"gpu0", "NUMA node of its memory", ""});
  cr_expect(find(checked(single_host(Machine(parts))), "numa-unknown") == nullptr);
  parts.gaps.push_back({"gpu1", "where it sits", "by the first CPU", GapAbout::numa_node});
  expect_only(checked(single_host(Machine(parts))), "numa-unknown", Severity::warning, {"gpu1"},
              "by the first CPU");
}

Test(check, a_link_whose_speed_cannot_be_read) {
  expect_only(checked(with("nic3", [](Device& d) { d.pcie_speed.reset(); })), "pcie-unknown",
              Severity::warning, {"nic3"}, "8 GT/s x16");
}

Test(check, a_link_of_words_that_nccl_does_not_know_and_of_unknown_width) {
  const auto without_width = [](Device& d) {
    d.pcie_speed = known(5.0, Provenance::file);
    d.attributes["pci.link_speed"] = "5.0 GT/s";
    d.pcie_lanes.reset();
  };
  const auto findings = checked(with("nic3", without_width));
  const Finding* const unknown = find(findings, "pcie-unknown");
  cr_assert(unknown != nullptr);
  cr_expect(unknown->evidence ==
                "taken for 5 GT/s x16; NCCL does not know \"5.0 GT/s\" and takes it for 8 GT/s x16",
            "%s", unknown->evidence.c_str());
}

Test(check, a_virtual_bridge_that_tells_a_slow_link) {
  expect_only(checked(with("switch0", [](Device& d) { d.pcie_speed = known(2.5, kDriver); })),
              "pcie-bridge", Severity::warning, {"switch0"}, "2.5 GT/s x16");
}

Test(check, access_control_above_gpus) {
  expect_only(checked(with("switch2", [](Device& d) { d.acs = known(true, kDriver); })), "acs",
              Severity::warning, {"switch2"}, "CPU");
}

Test(check, ports_of_different_mtu) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::port) d.mtu = known(d.label == "mlx5_5" ? 1024 : 4096, kDriver);
  };
  const auto findings = checked(plan);
  expect_only(findings, "mtu", Severity::warning, {"mlx5_5"}, "1024");
  cr_assert(findings.size() == 2);
}

Test(check, a_port_of_no_or_of_absurd_speed) {
  expect_only(checked(with("mlx5_0", [](Device& d) { d.line_rate.reset(); })), "speed-unknown",
              Severity::warning, {"mlx5_0"}, "1.25 GB/s");
  // As it is given in Mb/s by some: 200000000.
  const auto absurd =
      checked(with("mlx5_0", [](Device& d) { d.line_rate = known(gigabits(200000), kDriver); }));
  cr_assert(find(absurd, "speed-absurd")->devices[0] == "mlx5_0");
  cr_assert(find(absurd, "pcie-below-line-rate") == nullptr);
}

Test(check, a_port_without_carrier_or_lid) {
  const auto down = checked(with("mlx5_6", [](Device& d) { d.carrier = known(false, kDriver); }));
  cr_assert(find(down, "no-carrier")->severity == Severity::warning);
  const auto no_lid = checked(with("mlx5_6", [](Device& d) {
    d.link_layer = known(std::string("InfiniBand"), kDriver);
    d.lid = known(0, kDriver);
  }));
  const Finding* const found = find(no_lid, "no-lid");
  cr_assert(found && found->severity == Severity::error && found->devices[0] == "mlx5_6");
}

Test(check, eight_nics_that_tell_one_guid) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::nic) d.node_guid = known(uint64_t{0x1234}, kDriver);
  };
  const auto findings = checked(plan);
  cr_assert(find(findings, "guid-shared")->devices.size() == 8);
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::port) d.identity.guid = 0x1234;
  };
  cr_assert(find(checked(plan), "guid-shared")->what.find("port") != std::string::npos);
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::nic) d.sys_image_guid = known(uint64_t{0x1234}, kDriver);
  };
  cr_assert(find(checked(plan), "guid-shared")->what.find("card") != std::string::npos);
}

Test(check, the_functions_of_one_card_share_its_guid) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.label == "nic1") d.identity.bdf = Bdf{0, 4, 0, 1};
    if (d.label == "nic0" || d.label == "nic1") d.node_guid = known(uint64_t{0x1234}, kDriver);
  };
  const auto findings = checked(plan);
  cr_assert(findings.empty(), "%s", text(findings).c_str());
}

Test(check, a_gpu_far_from_every_nic) {
  const Plan plan{.numas = 2, .switches = {{0, 1, {400}}, {0, 1, {400}}, {1, 1, {}}}};
  expect_only(checked(plan), "no-near-nic", Severity::warning, {"gpu2"}, "SYS");
}

Test(check, gpus_that_crowd_one_port) {
  const Plan plan{.switches = {{0, 2, {400}}, {0, 0, {400}}}};
  expect_only(checked(plan), "nic-crowded", Severity::warning, {"gpu0", "gpu1"}, "mlx5_1");
}

// A VM that hides the switches: 8 GPUs and 8 NICs, each on a root port of its own.
Test(check, a_virtual_machine_that_hides_the_switches) {
  const Plan plan{.switches = {{0, 8, std::vector<double>(8, 400.0), true}}};
  Plan virtual_machine = plan;
  virtual_machine.edit = [](Device& d) {
    if (d.kind == DeviceKind::nic) d.pci_ids = known(PciIds{0x1af4, 0x1041, 0x1af4, 1}, kDriver);
  };
  const auto findings = checked(virtual_machine);
  expect_only(findings, "all-alike", Severity::warning, {}, "PHB for all of 8 GPUs and 8 ports");
  cr_assert(find(findings, "all-alike")->advice.find("make-xml") != std::string::npos);
  // Some boards are built so, and nothing is wrong with them.
  const auto bare = checked(plan);
  cr_assert(is_clean(bare) && find(bare, "all-alike")->advice.starts_with("if this is a VM"));
}

// As files tell it that know of one width only.
Test(check, a_gpu_whose_link_carries_less_than_those_of_its_peers) {
  const auto lesser = with("gpu5", [](Device& d) { d.pcie_lanes = known(8, kDriver); });
  expect_only(checked(lesser), "pcie-below-peers", Severity::warning, {"gpu5"},
              "32 GT/s x8, where gpu0 has 32 GT/s x16");
  Plan nic = usual_plan();
  nic.edit = [](Device& d) {
    if (d.kind == DeviceKind::nic) d.pci_ids = known(PciIds{0x15b3, 0x1021, 0, 0}, kDriver);
    if (d.label == "nic5") d.pcie_speed = known(16.0, kDriver);
  };
  cr_assert(find(checked(nic), "pcie-below-peers")->devices == std::vector<std::string>{"nic5"});
}

Test(check, one_gpu_that_is_better_than_the_others_is_no_fault_of_theirs) {
  const auto findings =
      checked(with("gpu5", [](Device& d) { d.pcie_speed = known(64.0, kDriver); }));
  cr_assert(findings.empty(), "%s", text(findings).c_str());
}

// hwloc tells the speed that the links ran at, of idle ones.
Test(check, gpus_that_idle_at_different_speeds_are_no_fault) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::gpu) d.pcie_speed_now = d.pcie_speed;
    if (d.label == "gpu5") d.pcie_speed = d.pcie_speed_now = known(2.5, Provenance::file);
  };
  cr_assert(find(checked(plan), "pcie-below-peers") == nullptr);
}

Test(check, a_board_s_own_ethernet_is_not_called_idle) {
  Plan plan{.switches = {{0, 2, {400}}, {0, 0, {400}}}};
  plan.edit = [](Device& d) {
    if (d.label == "mlx5_1") d.identity.number.reset();
  };
  const auto findings = checked(plan);
  cr_assert(find(findings, "nic-crowded") == nullptr, "%s", text(findings).c_str());
}

Test(check, an_unknown_cpu) {
  Plan plan = usual_plan();
  plan.cpu = "Unheard";
  expect_only(checked(plan), "cpu-unknown", Severity::warning, {"numa0", "numa1"}, "Unheard");
}

Test(check, peers_that_refuse_each_other) {
  const Machine sound = usual_plan().build();
  Machine::Parts parts{sound.name(),
                       sound.source(),
                       {sound.devices().begin(), sound.devices().end()},
                       {sound.links().begin(), sound.links().end()},
                       {}};
  const auto place = [&](std::string_view label) {
    return static_cast<uint32_t>(test::find(sound, label) - sound.devices().data());
  };
  parts.refusals = {{place("gpu0"), place("gpu1"), "chipset not supported"},
                    {place("gpu0"), place("gpu2"), "chipset not supported"}};
  const auto findings = checked(single_host(Machine(std::move(parts))));
  cr_assert(findings.size() == 2, "%s", text(findings).c_str());
  cr_assert(findings[0].what.find("gpu1") != std::string::npos);
}

namespace {

Topology cluster(const std::vector<Machine>& machines, const std::vector<size_t>& hosts) {
  std::vector<std::shared_ptr<const Machine>> shared;
  for (const Machine& machine : machines)
    shared.push_back(std::make_shared<const Machine>(machine));
  Topology topology;
  for (size_t i = 0; i < hosts.size(); i++)
    topology.hosts.push_back({fmt::format("a{}", i), shared[hosts[i]]});
  return topology;
}

}  // namespace

// One more level of bridges above a NIC, as some firmware shows on some boots.
Test(check, the_odd_host_of_a_kind_is_told) {
  const Plan odd = extra_bridge_plan();
  const auto findings = checked(cluster({usual_plan().build(), odd.build()}, {0, 0, 1, 0}));
  expect_only(findings, "odd-host", Severity::warning, {}, "switch9");
  cr_assert(find(findings, "odd-host")->host == "a2");
}

Test(check, hosts_of_another_kind_are_not_odd) {
  Plan other = usual_plan();
  other.nvlinks = 12;
  other.edit = [](Device& d) {
    if (d.kind == DeviceKind::gpu) d.compute_capability = known(80, kDriver);
  };
  cr_assert(checked(cluster({usual_plan().build(), other.build()}, {0, 0, 1})).empty());
}

Test(check, a_finding_of_hosts_that_are_alike_is_told_once) {
  const Plan plan = with("nic1", [](Device& d) { d.pcie_lanes_now = known(8, kDriver); });
  const auto findings = checked(cluster({plan.build()}, {0, 0, 0}));
  cr_assert(find(findings, "pcie-width")->host == "a0 and 2 more");
  cr_assert(std::ranges::count(findings, "pcie-width", &Finding::check) == 1);
}

Test(check, the_worst_comes_first) {
  Plan plan = with("nic1", [](Device& d) { d.pcie_lanes_now = known(8, kDriver); });
  plan.cpu = "Unheard";
  const auto findings = checked(plan);
  for (size_t i = 1; i < findings.size(); i++)
    cr_assert(findings[i - 1].severity <= findings[i].severity);
  cr_assert(findings[0].check == "pcie-width");
}

Test(check, infiniband_and_ethernet_have_mtus_of_their_own) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.kind != DeviceKind::port) return;
    const bool ethernet = d.label == "mlx5_7" || d.label == "mlx5_6";
    d.link_layer = known(std::string(ethernet ? "Ethernet" : "InfiniBand"), kDriver);
    d.mtu = known(ethernet ? 1024 : 4096, kDriver);
  };
  const auto findings = checked(plan);
  cr_assert(find(findings, "mtu") == nullptr, "%s", text(findings).c_str());
}

namespace {

Machine of_mtus(int first, int others) {
  Plan plan = usual_plan();
  plan.edit = [=](Device& d) {
    if (d.kind != DeviceKind::port) return;
    d.mtu = known(d.label == "mlx5_0" ? first : others, kDriver);
  };
  return plan.build();
}

}  // namespace

Test(check, every_host_of_uneven_mtus_is_told_and_hosts_of_other_mtus_than_the_rest) {
  const auto findings = checked(
      cluster({of_mtus(1024, 4096), of_mtus(2048, 4096), of_mtus(4096, 4096), of_mtus(1024, 1024)},
              {0, 1, 2, 3}));
  std::map<std::string, int> told;
  for (const Finding& f : findings)
    if (f.check == "mtu") told[f.host]++;
  cr_assert(told == (std::map<std::string, int>{{"a0", 2}, {"a1", 2}, {"a2", 1}, {"a3", 1}}), "%s",
            text(findings).c_str());
}

// Above another bridge, so that no device behind it shows the contrast.
Test(check, an_emulated_bridge_above_others_is_told_with_what_nccl_counts) {
  Plan plan = usual_plan();
  plan.finish = [](Builder& builder) {
    Device top = on_pci(DeviceKind::pci_switch, "top", 0x70, builder.numa(0));
    top.pcie_speed = known(5.0, kDriver);
    Device middle = on_pci(DeviceKind::pci_switch, "middle", 0x71, builder.see(top));
    builder.see(on_pci(DeviceKind::gpu, "below", 0x72, builder.see(middle)));
  };
  const auto findings = checked(plan);
  const Finding* const f = find(findings, "pcie-bridge");
  cr_assert(f != nullptr && f->devices == std::vector<std::string>{"top"}, "%s",
            text(findings).c_str());
  cr_assert(f->evidence.find("NCCL counts with 6 GB/s") != std::string::npos, "%s",
            f->evidence.c_str());
  cr_assert(f->advice.find("--overlay") != std::string::npos);
}

Test(check, gpus_without_any_nic_are_noted) {
  const auto findings = checked(Plan{.switches = {{0, 2, {}}}});
  const Finding* const f = find(findings, "no-nic");
  cr_assert(f != nullptr && f->severity == Severity::note, "%s", text(findings).c_str());
  cr_assert(find(checked(usual_plan()), "no-nic") == nullptr);
}

// As NCCL writes NICs that it merged.
Test(check, a_nic_without_a_pci_function_that_serves_gpus_is_one) {
  const auto findings = checked(*read_nccl_xml(
      "<system version='1'><cpu numaid='0' arch='x86_64' vendor='GenuineIntel' familyid='6' "
      "modelid='143'><pci busid='0000:01:00.0' class='0x030200' link_speed='16.0 GT/s PCIe' "
      "link_width='16'><gpu dev='0' sm='80'/></pci><nic><net name='mlx5_0+mlx5_1' dev='0' "
      "speed='200000' port='1'/></nic></cpu></system>",
      "test"));
  cr_assert(find(findings, "no-nic") == nullptr, "%s", text(findings).c_str());
}

// NVLinks to the GPU itself, to one that is trimmed from the file, to one that tells none, and all
// to each peer.
Test(check, links_that_the_tree_calls_unsure_are_found_once) {
  using Links = std::vector<std::pair<Bdf, uint32_t>>;  // of gpu0; its peers are at 3, 5, 6 …
  const Bdf self{0, 2, 0, 0}, peer{0, 3, 0, 0}, second{0, 7, 0, 0}, nowhere{0, 0xbd, 0, 0};
  for (const auto& [links, answered, evidence] : std::vector<std::tuple<Links, bool, std::string>>{
           {{{self, 12}}, false, "tells 12 nvlink to its own end"},
           {{{nowhere, 4}}, false, "nvlink to 0000:bd:00.0, which is not described"},
           {{{peer, 12}}, false, "nvlink to 0000:03:00.0, which tells none back"},
           {{{peer, 12}, {second, 12}}, true, "tells 24 NVLinks where a GPU of its kind has 18"}}) {
    Plan plan = usual_plan();
    plan.nvlinks = 0;
    plan.finish = [&, &links = links, answered = answered](Builder& builder) {
      const uint32_t gpu = builder.see(on_pci(DeviceKind::gpu, "", 2, kNoDevice));
      for (const auto& [to, count] : links) {
        builder.link_to_address(gpu, to, DeviceKind::gpu, {LinkType::nvlink, count});
        if (answered)
          builder.link_to_address(builder.see(on_pci(DeviceKind::gpu, "", to.bus, kNoDevice)), self,
                                  DeviceKind::gpu, {LinkType::nvlink, count});
      }
    };
    const auto findings = checked(plan);
    expect_only(findings, "link-unsure", Severity::warning, {"gpu0"}, evidence, "nvlink-missing");
    cr_expect(std::ranges::count(findings, "link-unsure", &Finding::check) == 1, "%s",
              text(findings).c_str());
  }
}

Test(check, a_nic_that_is_listed_in_several_places) {
  Plan plan = usual_plan();
  plan.finish = [](Builder& builder) {
    const uint32_t other = builder.see(on_pci(DeviceKind::pci_switch, "", 6, kNoDevice));
    builder.see(on_pci(DeviceKind::nic, "", 4, other));
  };
  expect_only(checked(plan), "place-unsure", Severity::warning, {"nic0"}, "several places");
}

Test(check, whatever_is_found_on_machines_in_files_has_evidence_and_advice) {
  for (const auto& folder :
       {std::filesystem::path(golden("")), recorded(), recorded().parent_path() / "hwloc"}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (const auto topology = read_topology_file(file.path())) checked(*topology);
  }
}

Test(check, rare_findings_have_evidence_and_advice) {
  Plan crowd{.switches = {{0, 300, std::vector<double>(300, 400.0), true}}};
  crowd.edit = [next = uint16_t{0}](Device& d) mutable {
    if (d.identity.bdf) d.identity.bdf->domain = next++;
  };
  Plan ports{.switches = {{0, 1, {400}}}};
  ports.finish = [](Builder& builder) {
    Device second{.kind = DeviceKind::port,
                  .parent = builder.see(on_pci(DeviceKind::nic, "", 3, kNoDevice))};
    second.identity.name = "mlx5_1";
    second.line_rate = known(gigabits(400), Provenance::file);
    builder.see(second);
  };
  Machine::Parts refused = usual_plan().build().parts();
  refused.refusals = {{2, 3, ""}};
  Plan no_cpu = usual_plan();
  no_cpu.edit = [](Device& d) {
    if (d.kind == DeviceKind::numa) d.cpu.reset();
  };
  cr_expect(find(checked(crowd), "rails-rough") != nullptr);
  cr_expect(find(checked(ports), "pcie-below-all-ports") != nullptr);
  cr_expect(find(checked(no_cpu), "cpu-unknown") != nullptr);
  cr_expect(find(checked(single_host(Machine(refused))), "peer-refused") != nullptr);
}
