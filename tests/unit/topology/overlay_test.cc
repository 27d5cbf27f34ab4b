// SPDX-License-Identifier: Apache-2.0
#include "topology/overlay.h"

#include <criterion/criterion.h>

#include <set>

#include "one_host.h"
#include "plan.h"
#include "topology/format/formats.h"
#include "topology/path.h"
#include "topology/replay.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

Machine guest() {
  const auto topology = read_topology_file(golden("guest.xml"));
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  return *topology->hosts[0].machine;
}

Overlaid lay_on(const Machine& machine, const std::string& toml) {
  const auto overlay = read_overlay_toml(toml);
  cr_assert(overlay.has_value(), "%s", overlay ? "" : overlay.error().text.c_str());
  auto laid = lay_over(machine, *overlay);
  cr_assert(laid.has_value(), "%s", laid ? "" : laid.error().text.c_str());
  return std::move(*laid);
}

Overlaid lay(const std::string& toml) { return lay_on(guest(), toml); }

Machine laid_over(const Machine& machine, const std::string& toml) {
  return lay_on(machine, toml).machine;
}

uint32_t index_of(const Machine& machine, std::string_view label) {
  for (uint32_t i = 0; i < machine.devices().size(); i++)
    if (machine.devices()[i].label == label) return i;
  cr_assert(false, "no device %s", std::string(label).c_str());
  return 0;
}

Path between(const Machine& machine, const std::string& a, const std::string& b) {
  return Paths(machine, Paths::View::physical).between(index_of(machine, a), index_of(machine, b));
}

}  // namespace

Test(overlay, a_guest_alone_tells_no_distance_from_another) {
  const Machine machine = guest();
  const Paths paths(machine, Paths::View::physical);
  std::set<PathClass> classes;
  for (int gpu = 0; gpu < 8; gpu++)
    for (int nic = 0; nic < 8; nic++)
      classes.insert(paths
                         .between(index_of(machine, fmt::format("gpu{}", gpu)),
                                  index_of(machine, fmt::format("mlx5_{}", nic)))
                         .type);
  cr_assert(classes == std::set{PathClass::phb});
}

Test(overlay, switches_pair_gpus_with_their_nics) {
  const Overlaid laid = lay(read_file(golden("guest.overlay.toml")));
  cr_assert(laid.unmatched.empty());
  for (int i = 0; i < 8; i++) {
    const std::string gpu = fmt::format("gpu{}", i);
    cr_assert(between(laid.machine, gpu, fmt::format("mlx5_{}", i)).type == PathClass::pix);
    cr_assert(between(laid.machine, gpu, fmt::format("mlx5_{}", (i + 4) % 8)).type ==
              PathClass::sys);
  }
  cr_assert(laid.machine.count(DeviceKind::pci_switch) == 4, "root ports left empty are gone");
  cr_assert(laid.machine.count(DeviceKind::numa) == 2, "the two that are told");
  cr_assert(find_link(laid.machine, "gpu7", "nvswitch0")->count == 18);
}

Test(overlay, an_invented_switch_has_an_address_of_its_own) {
  const Overlaid laid = lay(read_file(golden("guest.overlay.toml")));
  std::set<Bdf> addresses;
  for (const Device& d : laid.machine.devices())
    if (d.identity.bdf) cr_assert(addresses.insert(*d.identity.bdf).second);
  cr_assert(addresses.size() == 20);
}

Test(overlay, addresses_that_the_guest_does_not_have_are_listed) {
  const Overlaid laid = lay(read_file(golden("host-addresses.overlay.toml")));
  cr_assert(laid.unmatched ==
            (std::vector<Bdf>{{0, 0x18, 0, 0}, {0, 0x19, 0, 0}, {0, 0x5e, 0, 0}}));
  cr_assert(has_gap(laid.machine, "0000:18:00.0", "no such device"));
}

Test(overlay, an_unknown_speed_stays_assumed_until_it_is_told) {
  cr_assert(has_gap(guest(), "nic5", "PCIe speed"));
  const Overlaid without = lay("");
  cr_assert(has_gap(without.machine, "nic5", "PCIe speed"));
  cr_assert(find(without.machine, "nic5")->pcie_speed->from == Provenance::assumed);
  const Overlaid with = lay("[pcie]\ngt_s = 32.0\nlanes = 16");
  cr_assert(!has_gap(with.machine, "nic5", "PCIe speed"));
  cr_assert(*find(with.machine, "nic5")->pcie_speed == (Known<double>{32, Provenance::file}));
  const Overlaid half = lay("[[device]]\nbdf = \"0000:0e:00.0\"\ngt_s = 16.0");
  cr_assert(has_gap(half.machine, "nic5", "PCIe width"));
}

Test(overlay, a_switch_of_unknown_speed_is_as_fast_as_what_is_beneath_it) {
  const Machine machine = usual_plan().build();
  const std::string toml =
      "[[switch]]\nbdf = \"0000:f0:00.0\"\ndevices = [\"0000:f1:00.0\"]\n"
      "[[switch]]\nbdf = \"0000:f1:00.0\"\ndevices = [\"0000:02:00.0\", \"0000:04:00.0\"]";
  const Machine laid = laid_over(machine, toml);
  for (const uint8_t bus : {uint8_t{0xf0}, uint8_t{0xf1}}) {
    const auto made = std::ranges::find(laid.devices(), Bdf{0, bus, 0, 0},
                                        [](const Device& d) { return d.identity.bdf; });
    cr_assert(made != laid.devices().end());
    cr_expect(*made->pcie_speed == (Known<double>{32, Provenance::assumed}));
    cr_expect(*made->pcie_lanes == (Known<int>{16, Provenance::assumed}));
    cr_expect(has_gap(laid, made->label, "the overlay does not tell"));
  }
  const std::string xml = *nccl_xml_text(single_host(laid));
  cr_expect(
      xml.find("f0:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\"") != std::string::npos,
      "%s", xml.c_str());
  const Machine told = laid_over(machine, toml + "\n[pcie]\ngt_s = 16.0\nlanes = 8");
  cr_expect(find(told, "gpu0")->pcie_lanes->value == 16);
  cr_expect(!has_gap(told, "switch0", "the overlay does not tell"));
}

Test(overlay, an_unknown_line_rate_is_a_gap_until_it_is_told) {
  Plan plan = usual_plan();
  plan.edit = change("mlx5_0", [](Device& d) { d.line_rate.reset(); });
  const Machine guest = plan.build();
  cr_assert(has_gap(guest, "mlx5_0", "its speed"));
  cr_assert(has_gap(laid_over(guest, ""), "mlx5_0", "its speed"));
  cr_assert(!has_gap(laid_over(guest,
                               "[[device]]\nbdf = \"0000:04:00.0\"\n"
                               "gigabits_per_second = 200.0"),
                     "mlx5_0", "its speed"));
}

Test(overlay, what_it_tells_outweighs_what_the_guest_saw) {
  const Overlaid laid =
      lay("[[device]]\nbdf = \"0000:01:00.0\"\nnuma = 1\nlanes = 8\n"
          "[[device]]\nbdf = \"0000:09:00.0\"\ngigabits_per_second = 200.0");
  cr_assert(find(laid.machine, "gpu0")->pcie_lanes->value == 8);
  cr_assert(find(laid.machine, "mlx5_0")->line_rate->value == gigabits(200));
  cr_assert(between(laid.machine, "gpu0", "numa1").type == PathClass::phb);
}

Test(overlay, an_nvlink_domain_of_several_hosts_stays_one) {
  const Machine tray = *read_synthetic("gb200-nvl72")->hosts[0].machine;
  cr_assert(tray.hosts_in_domain() == 18);
  cr_assert(laid_over(tray, "[pcie]\ngt_s = 32.0").hosts_in_domain() == 18);
}

// A port that tells kb/s for Mb/s, beneath a bridge that tells 2.5 GT/s.
Test(overlay, what_nccl_believes_stays_until_it_is_corrected) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.label == "mlx5_0") d.line_rate = known(gigabits(200000), Provenance::file);
    if (d.label == "switch1") d.pcie_speed = known(2.5, Provenance::file);
  };
  const Machine misled = plan.build();
  cr_assert(misled.nccl_links().size() == 2);
  const Machine same = laid_over(misled, "");
  cr_assert(same_kind(misled, same));
  const Machine corrected =
      laid_over(misled,
                "[[device]]\nbdf = \"0000:04:00.0\"\ngigabits_per_second = 200.0\n"
                "[[device]]\nbdf = \"0000:06:00.0\"\ngt_s = 32.0");
  cr_assert(corrected.nccl_links().empty());
  cr_assert(!has_gap(corrected, "mlx5_0", "tells") && !has_gap(corrected, "switch1", "tells"));
}

// The label that it had may be another's where it is seen again.
Test(overlay, a_gap_stays_with_its_device) {
  Builder builder("host", "test");
  const Device numa{.kind = DeviceKind::numa, .identity = {.number = 0}};
  const uint32_t node = builder.see(numa);
  const uint32_t first = builder.see(on_pci(DeviceKind::gpu, "x", 1, node));
  builder.see(on_pci(DeviceKind::gpu, "y", 2, node));
  builder.gap(first, "odd");
  Builder other("host", "test");
  other.see(on_pci(DeviceKind::gpu, "x", 2, other.see(numa)));
  replay(*std::move(builder).build(), other, {});
  const Machine again = *std::move(other).build();
  cr_assert(has_gap(again, "x#2", "odd") && find(again, "x#2")->identity.bdf->bus == 1);
}

Test(overlay, switches_may_be_beneath_switches) {
  const Overlaid laid =
      lay("[[switch]]\nbdf = \"0000:f0:00.0\"\ndevices = [\"0000:f1:00.0\", \"0000:09:00.0\"]\n"
          "[[switch]]\nbdf = \"0000:f1:00.0\"\ndevices = [\"0000:01:00.0\", \"0000:0a:00.0\"]");
  cr_assert(laid.unmatched.empty());
  cr_assert(between(laid.machine, "gpu0", "mlx5_0").type == PathClass::pxb);
}

Test(overlay, a_second_socket_that_the_guest_hides_has_a_cpu_like_the_first) {
  Plan plan = usual_plan();
  plan.switches.resize(2);
  plan.numas = 1;
  const Machine guest = plan.build();
  for (const char* toml : {"[[switch]]\nnuma = 1\ndevices = [\"0000:02:00.0\"]",
                           "[[device]]\nnuma = 1\nbdf = \"0000:02:00.0\""}) {
    const Machine laid = laid_over(guest, toml);
    cr_expect(between(laid, "gpu0", "numa1").type == PathClass::phb);
    cr_expect(between(laid, "gpu2", "numa1").type == PathClass::sys);
    const Device* const hidden = find(laid, "numa1");
    cr_expect(hidden->cpu->value == find(guest, "numa0")->cpu->value);
    cr_expect(hidden->cpu->from == Provenance::assumed);
  }
}

Test(overlay, nodes_in_place_of_one_without_a_number_have_its_cpu) {
  const Machine guest = *read_host(
      "<system version='1'><cpu numaid='-1' affinity='ffff' arch='x86_64' vendor='GenuineIntel' "
      "familyid='6' modelid='143'><pci busid='0000:01:00.0' class='0x030200' link_speed='32.0 GT/s "
      "PCIe' link_width='16'><gpu dev='0' sm='90'/></pci><pci busid='0000:02:00.0' "
      "class='0x030200' link_speed='32.0 GT/s PCIe' link_width='16'><gpu dev='1' "
      "sm='90'/></pci></cpu></system>");
  const std::string by_switch =
      "[[switch]]\nnuma = 0\ndevices = [\"01:00.0\"]\n"
      "[[switch]]\nnuma = 1\ndevices = [\"02:00.0\"]";
  const std::string by_device =
      "[[device]]\nnuma = 0\nbdf = \"01:00.0\"\n[[device]]\nnuma = 1\nbdf = \"02:00.0\"";
  for (const std::string& toml : {by_switch, by_device}) {
    const std::string xml = *nccl_xml_text(single_host(laid_over(guest, toml)));
    for (const char* numaid : {"0", "1"}) {
      const std::string cpu = fmt::format(
          "<cpu numaid=\"{}\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
          "familyid=\"6\" modelid=\"143\">",
          numaid);
      cr_expect(xml.find(cpu) != std::string::npos, "%s", xml.c_str());
    }
    cr_expect(xml.find("numaid=\"-1\"") == std::string::npos, "%s", xml.c_str());
  }
}

// What is kept of such a NUMA node is written once.
Test(overlay, switches_within_switches_leave_no_numa_node_without_a_number) {
  const Machine guest = *read_host(
      "<system version='1'><cpu numaid='-1' arch='x86_64' vendor='GenuineIntel' familyid='6' "
      "modelid='143'><pci busid='0000:01:00.0' class='0x030200'><gpu dev='0' sm='90'/></pci>"
      "<pci busid='0000:02:00.0' class='0x030200'><gpu dev='1' sm='90'/></pci><fan/></cpu>"
      "<rack/></system>");
  const std::string nested =
      "[[switch]]\nnuma = 0\ndevices = [\"f1:00.0\"]\n"
      "[[switch]]\nbdf = \"f1:00.0\"\ndevices = [\"01:00.0\"]\n"
      "[[switch]]\nnuma = 1\ndevices = [\"02:00.0\"]";
  const std::string xml = *nccl_xml_text(single_host(laid_over(guest, nested)));
  cr_expect(xml.find("numaid=\"-1\"") == std::string::npos, "%s", xml.c_str());
  for (const char* kept : {"<fan/>", "<rack/>"}) {
    const size_t first = xml.find(kept);
    cr_expect(first != std::string::npos && xml.find(kept, first + 1) == std::string::npos, "%s",
              xml.c_str());
  }
}

Test(overlay, switches_that_make_no_tree_are_an_error) {
  for (const auto& [toml, about] : std::vector<std::pair<std::string, std::string>>{
           {"[[switch]]\nbdf = \"0000:01:00.0\"\ndevices = [\"0000:09:00.0\"]",
            "a [[switch]] has the address 0000:01:00.0 of gpu0; give it a free one or none"},
           {"[[switch]]\nbdf = \"0000:f0:00.0\"\ndevices = [\"0000:f0:00.0\"]",
            "the [[switch]] at 0000:f0:00.0 is beneath itself"},
           {"[[switch]]\nbdf = \"0000:f0:00.0\"\ndevices = [\"0000:f1:00.0\"]\n"
            "[[switch]]\nbdf = \"0000:f1:00.0\"\ndevices = [\"0000:f0:00.0\", \"0000:01:00.0\"]",
            "the [[switch]] at 0000:f0:00.0 is beneath itself"}}) {
    const auto laid = lay_over(guest(), *read_overlay_toml(toml));
    cr_assert(!laid && laid.error().text == about, "%s", laid ? "" : laid.error().text.c_str());
  }
}

Test(overlay, numa_nodes_that_contradict_each_other_are_an_error) {
  const std::string device = "[[device]]\nbdf = \"0000:01:00.0\"\nnuma = 1\n";
  const std::string around = "[[switch]]\ndevices = [\"0000:f0:00.0\"]\nnuma = 0\n";
  const std::string within = "[[switch]]\nbdf = \"0000:f0:00.0\"\ndevices = [\"0000:01:00.0\"]\n";
  for (const auto& [toml, about] : std::vector<std::pair<std::string, std::string>>{
           {"[[switch]]\ndevices = [\"0000:01:00.0\"]\nnuma = 0\n" + device,
            "the [[device]] at 0000:01:00.0 tells numa 1, and the [[switch]] that it is beneath "
            "tells 0; make them agree"},
           {"[[switch]]\ndevices = [\"0000:01:00.0\"]\n" + device,
            "the [[device]] at 0000:01:00.0 tells numa 1, and the [[switch]] that it is beneath "
            "tells none; make them agree"},
           {around + within + device,
            "the [[device]] at 0000:01:00.0 tells numa 1, and the [[switch]] that it is beneath "
            "tells 0; make them agree"},
           {around + within + "numa = 1",
            "the [[switch]] at 0000:f0:00.0 tells numa 1, and the one that it is beneath tells 0; "
            "make them agree"}}) {
    const auto laid = lay_over(guest(), *read_overlay_toml(toml));
    cr_assert(!laid && laid.error().text == about, "%s", laid ? "" : laid.error().text.c_str());
  }
}

Test(overlay, numa_nodes_that_agree_leave_switches_where_they_are) {
  const Machine m = laid_over(guest(),
                              "[[switch]]\ndevices = [\"0000:f0:00.0\"]\nnuma = 0\n"
                              "[[switch]]\nbdf = \"0000:f0:00.0\"\nnuma = 0\n"
                              "devices = [\"0000:01:00.0\"]\n"
                              "[[device]]\nbdf = \"0000:01:00.0\"\nnuma = 0\n");
  const Device& inner = m.devices()[m.devices()[index_of(m, "gpu0")].parent];
  cr_assert(to_text(*inner.identity.bdf) == "0000:f0:00.0");
  cr_assert(m.devices()[inner.parent].kind == DeviceKind::pci_switch, "beneath the other");
}

Test(overlay, a_speed_that_is_told_takes_the_place_of_words_of_the_same_speed) {
  const Machine guest = *read_host(
      "<system version='1'><cpu numaid='0' arch='x86_64' vendor='GenuineIntel' familyid='6' "
      "modelid='143'><pci busid='0000:01:00.0' class='0x030200' link_speed='16.0 GT/s' "
      "link_width='16'><gpu dev='0' sm='90'/></pci></cpu></system>");
  cr_assert(guest.nccl_links().size() == 1, "NCCL does not know these words");
  const Machine m = laid_over(guest, "[[device]]\nbdf = \"01:00.0\"\ngt_s = 16.0");
  cr_expect(m.nccl_links().empty() && m.gaps().empty());
  const std::string xml = *nccl_xml_text(single_host(m));
  cr_expect(xml.find("link_speed=\"16.0 GT/s PCIe\"") != std::string::npos, "%s", xml.c_str());
}

Test(overlay, a_line_rate_of_what_is_no_nic_is_an_error) {
  const auto laid = lay_over(guest(), *read_overlay_toml("[[device]]\nbdf = \"0000:01:00.0\"\n"
                                                         "gigabits_per_second = 400.0"));
  cr_assert(!laid && laid.error().text ==
                         "the [[device]] at 0000:01:00.0 has gigabits_per_second, and gpu0 there "
                         "is no NIC",
            "%s", laid ? "" : laid.error().text.c_str());
}

Test(overlay, a_mistake_is_an_error_that_names_its_line) {
  for (const auto& [toml, about] : std::vector<std::pair<std::string, std::string>>{
           {"[[switch]]\nnuma = 0", "line 1: a [[switch]] needs 'devices'"},
           {"[[switch]]\ndevices = [\"x\"]", "line 2: 'x' is not a PCI address"},
           {"[[switch]]\ndevices = [\"01:00.0\", \"01:00.0\"]", "0000:01:00.0 is listed twice"},
           {"[[swich]]", "an overlay has no key 'swich'; it has switch, device"},
           {"[[device]]\nbdf = \"01:00.0\"\nlanes = 7",
            "line 3: 'lanes' must be one of 1, 2, 4, 8, 12, 16, 32"},
           {"[pcie]\ngt_s = 31.0", "line 2: 'gt_s' must be one of 2.5, 5, 8, 16, 32, 64"},
           {"[nvlink]\nlinks_to_switch = []", "line 1: [nvlink] needs 'links_to_switch'"},
           {"[[device]]\nnuma = 1", "needs 'bdf'"},
           {"[[switch]]\nbdf = \"f0:00.0\"\ndevices = [\"01:00.0\"]\n[[device]]\n"
            "bdf = \"f0:00.0\"\nlanes = 8",
            "line 4: 0000:f0:00.0 is a [[switch]] of this overlay; tell numa, gt_s and lanes "
            "there"},
           {"pcie = 3", "[pcie] must be a table"}}) {
    const auto overlay = read_overlay_toml(toml);
    cr_assert(!overlay && overlay.error().text.find(about) != std::string::npos, "%s: %s",
              toml.c_str(), overlay ? "" : overlay.error().text.c_str());
  }
}
