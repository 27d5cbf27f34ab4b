// SPDX-License-Identifier: Apache-2.0
// What files of NCCL's get wrong and NCCL believes, or does not know.
#include "nccl_xml_texts.h"

using namespace crosstie;
using namespace crosstie::test;

Test(nccl_xml_traps, an_emulated_bridge_is_no_bottleneck_but_nccl_takes_it_for_one) {
  const Machine m = read(system_of(
      cpu(0, pci("0000:01:00.0", "0x060400",
                 gpu(0) + pci("0000:20:00.0", "0x020000", net("mlx5_0", "speed=\"200000\""),
                              "link_speed=\"32.0 GT/s PCIe\" link_width=\"0\""),
                 "link_speed=\"2.5 GT/s PCIe\" link_width=\"1\""))));
  expect(m, Paths::View::physical, "gpu0", "numa0", PathClass::phb, 48);
  expect(m, Paths::View::nccl, "gpu0", "numa0", PathClass::phb, 0.1875);
  expect(m, Paths::View::nccl, "gpu0", "mlx5_0", PathClass::pix, 25);
  cr_assert(has_gap(m, "switch0", "NCCL believes it and counts with 0.188 GB/s"));
  cr_assert(has_gap(m, "nic0", "its PCIe width is not known"));
  cr_assert(find(m, "switch0")->pcie_speed->value == 2.5, "what was told stays");
}

Test(nccl_xml_traps, a_slower_slot_above_a_faster_device_is_believed) {
  const Machine m = read(system_of(cpu(0, pci("0000:01:00.0", "0x060400", gpu(0),
                                              "link_speed=\"16.0 GT/s PCIe\" link_width=\"8\""))));
  for (const auto view : {Paths::View::physical, Paths::View::nccl})
    expect(m, view, "gpu0", "numa0", PathClass::phb, 12);
  cr_assert(m.nccl_links().empty());
}

Test(nccl_xml_traps, all_links_listed_to_each_of_seven_peers_are_behind_a_switch) {
  std::string gpus;
  for (int i = 0; i < 8; i++) {
    std::string links;
    for (int peer = 0; peer < 8; peer++)
      if (peer != i) links += nvlink(peer, 18);
    gpus += gpu(i, links);
  }
  const std::string text = system_of(cpu(0, gpus));
  const Machine m = read(text);
  cr_assert(nvlinks(m) == 8 * 18);
  cr_assert(m.count(DeviceKind::nvswitch) == 1);
  cr_assert(has_gap(m, "gpu3", "tells 126 NVLinks where a GPU of its kind has 18"));
  expect(m, Paths::View::physical, "gpu0", "gpu7", PathClass::nvl, 18 * 20.6);
  cr_assert(path(m, Paths::View::physical, "gpu0", "gpu7").hops == 2);
  expect(m, Paths::View::nccl, "gpu0", "gpu7", PathClass::nvl, 18 * 20.6);
  cr_assert(path(m, Paths::View::nccl, "gpu0", "gpu7").hops == 1, "NCCL sees no switch");
  const Machine again = read(written(read_all(text)));
  cr_assert(difference(m, again).empty(), "%s", difference(m, again).c_str());
}

Test(nccl_xml_traps, a_mesh_within_what_gpus_have_stays_a_mesh) {
  const Machine m = read(system_of(cpu(0, gpu(0, nvlink(1, 6) + nvlink(2, 6), 80) +
                                              gpu(1, nvlink(0, 6) + nvlink(2, 6), 80) +
                                              gpu(2, nvlink(0, 6) + nvlink(1, 6), 80))));
  cr_assert(nvlinks(m) == 18 && m.count(DeviceKind::nvswitch) == 0 && m.nccl_links().empty());
}

Test(nccl_xml_traps, links_that_one_end_tells_go_both_ways_and_nccl_is_said_to_fail) {
  const std::string text = system_of(
      cpu(0, gpu(0, nvlink(1, 4), 80) + gpu(1, nvlink(2, 4), 80) + gpu(2, nvlink(1, 4), 80)));
  const Machine m = read(text);
  cr_assert(nvlinks(m) == 8);
  for (const auto& [from, to] : {std::pair("gpu0", "gpu1"), {"gpu1", "gpu0"}})
    expect(m, Paths::View::physical, from, to, PathClass::nvl, 80);
  cr_assert(
      has_gap(m, "gpu0", "nvlink to 0000:11:00.0, which tells none back; NCCL, told so, finds"));
  cr_assert(has_gap(m, "gpu0", "no path back and fails"));
  cr_assert(read(written(read_all(text))).gaps().empty(), "what is written tells both");
}

Test(nccl_xml_traps, of_a_gpu_that_lists_no_links_nccl_asks_the_driver) {
  const Machine m = read(system_of(cpu(0, gpu(0, nvlink(1, 4), 80) + gpu(1, "", 80))));
  cr_assert(nvlinks(m) == 4);
  cr_assert(has_gap(m, "gpu0", "which tells none back; NCCL, told so, asks the driver"));
  cr_assert(!has_gap(m, "gpu0", "fails"));
}

Test(nccl_xml_traps, a_gpu_that_is_told_as_an_nvswitch_is_one_to_nccl_and_tells_none_back) {
  const std::string as_switch = "<nvlink target=\"0000:11:00.0\" count=\"4\" tclass=\"0x068000\"/>";
  const std::string text = system_of(cpu(0, gpu(0, as_switch, 80) + gpu(1, nvlink(0, 4), 80)));
  const Machine m = read(text);
  cr_assert(nvlinks(m) == 4 && m.count(DeviceKind::nvswitch) == 0);
  cr_assert(has_gap(m, "gpu0", "as to an NVSwitch, where a GPU is; NCCL takes it for an NVSwitch"));
  cr_assert(has_gap(m, "gpu1", "nvlink to 0000:10:00.0, which tells none back"));
  cr_assert(has_gap(m, "gpu1", "finds no path back and fails"));
  const std::string again = written(read_all(text));
  cr_assert(again.find(as_switch) != std::string::npos, "%s", again.c_str());
}

Test(nccl_xml_traps, ends_that_tell_unequal_links_are_counted_by_nccl_each_its_own_way) {
  const Machine m = read(system_of(cpu(0, gpu(0, nvlink(1, 4), 80) + gpu(1, nvlink(0, 2), 80))));
  cr_assert(nvlinks(m) == 4);
  cr_assert(has_gap(m, "gpu0", "tells 4 nvlink where the other end tells 2; NCCL counts each way"));
}

Test(nccl_xml_traps, nvlinks_of_two_generations_carry_what_the_slower_end_does) {
  for (const int newer : {80, 90}) {
    const Machine m =
        read(system_of(cpu(0, gpu(0, nvlink(1, 4), newer) + gpu(1, nvlink(0, 4), 86))));
    expect(m, Paths::View::physical, "gpu0", "gpu1", PathClass::nvl, 4 * 12);
    cr_assert(has_gap(m, "gpu0", "NCCL counts each way with the one that tells it"));
  }
}

Test(nccl_xml_traps, a_pcie_speed_that_nccl_does_not_know_is_pcie_3_to_nccl_alone) {
  const auto with = [](const std::string& speed) {
    const std::string link = fmt::format("link_speed=\"{}\" link_width=\"8\"", speed);
    return system_of(cpu(0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"0\"/>", link.c_str())));
  };
  for (const auto& [speed, gigatransfers] :
       std::vector<std::pair<std::string, double>>{{"20.0 GT/s PCIe", 20},
                                                   {"16.0 GT/s", 16},
                                                   {"64 GT/s", 64},
                                                   {"32.0", 32},
                                                   {"16GT/s", 16}}) {
    const std::string text = with(speed);
    const Machine m = read(text);
    cr_assert(find(m, "gpu0")->pcie_speed->value == gigatransfers);
    expect(m, Paths::View::physical, "gpu0", "numa0", PathClass::phb, gigatransfers * 0.75);
    expect(m, Paths::View::nccl, "gpu0", "numa0", PathClass::phb, 6);
    cr_assert(has_gap(m, "gpu0", "which NCCL does not know: it counts with 8 GT/s x8"));
    const Machine again = read(written(read_all(text)));
    cr_assert(difference(m, again).empty(), "%s", difference(m, again).c_str());
  }
  for (const char* speed : {"16 GT/s", "16.0 GT/s PCIe", "2.5 GT/s"}) {
    const Machine m = read(with(speed));
    cr_assert(m.nccl_links().empty() && m.gaps().empty(), "%s", speed);
  }
}

Test(nccl_xml_traps, a_pcie_speed_without_a_number_is_not_known_to_us_either) {
  const std::string text = system_of(cpu(0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"0\"/>",
                                                "link_speed=\"Gen4\" link_width=\"8\"")));
  const Machine m = read(text);
  for (const auto view : {Paths::View::physical, Paths::View::nccl})
    expect(m, view, "gpu0", "numa0", PathClass::phb, 6);
  cr_assert(has_gap(m, "gpu0", "its PCIe speed is not known"));
  cr_assert(written(read_all(text)).find("link_speed=\"Gen4\"") != std::string::npos);
}

Test(nccl_xml_traps, an_emulated_bridge_of_a_speed_that_nccl_does_not_know_is_pcie_3_to_it) {
  const Machine m = read(system_of(
      cpu(0, pci("0000:01:00.0", "0x060400", gpu(0), "link_speed=\"5.0 GT/s\" link_width=\"1\""))));
  expect(m, Paths::View::physical, "gpu0", "numa0", PathClass::phb, 48);
  expect(m, Paths::View::nccl, "gpu0", "numa0", PathClass::phb, 0.75);
  cr_assert(!has_gap(m, "switch0", "NCCL believes it"));
}

Test(nccl_xml_traps, a_class_that_nccl_does_not_take_for_a_gpus_is_said_to_hide_it) {
  const auto with = [](const char* kind, const char* inside) {
    return read(system_of(cpu(0, pci("0000:10:00.0", kind, inside))));
  };
  const char* const element = "<gpu dev=\"0\"/>";
  for (const char* kind : {"0x30200", "030200", "0X030200"}) {
    cr_assert(has_gap(with(kind, ""), "gpu0", "does not see this GPU"), "%s", kind);
    cr_assert(with(kind, element).gaps().empty(), "NCCL goes by the element where there is one");
    cr_assert(find(with(kind, element), "gpu0")->pci_class->value == 0x030200, "%s", kind);
  }
  cr_assert(with("", element).gaps().empty() && with("", element).count(DeviceKind::gpu) == 1);
  for (const char* kind : {"0x030200", "0x0302", "0x03", "0x038000", "0x120000"}) {
    const Machine m = with(kind, "");
    cr_assert(!has_gap(m, "gpu0", "does not see this GPU"), "%s", kind);
    cr_assert(m.count(DeviceKind::gpu) == 1 && find(m, "gpu0")->pci_class->value >= 0x030000);
  }
  const auto linked = [](const char* tclass) {
    return read(system_of(cpu(
        0,
        gpu(0, fmt::format("<nvlink target=\"0000:11:00.0\" count=\"4\" tclass=\"{}\"/>", tclass)) +
            gpu(1, nvlink(0, 4)))));
  };
  cr_assert(has_gap(linked("0x30200"), "gpu0", "takes that for an NVSwitch"));
  cr_assert(linked("0x0302").gaps().empty());
}

Test(nccl_xml_traps, links_that_lead_nowhere_are_told_and_written_again) {
  const std::string text = system_of(cpu(0, gpu(0, nvlink(0, 12) + nvlink(9, 4), 80)));
  const Machine m = read(text);
  cr_assert(nvlinks(m) == 0);
  cr_assert(has_gap(m, "gpu0", "12 nvlink to its own end"));
  cr_assert(has_gap(m, "gpu0", "nvlink to 0000:19:00.0, which is not described"));
  const std::string again = written(read_all(text));
  cr_assert(again.find("target=\"0000:10:00.0\" count=\"12\"") != std::string::npos);
  cr_assert(again.find("target=\"0000:19:00.0\" count=\"4\"") != std::string::npos);
}

Test(nccl_xml_traps, a_link_that_tells_nothing_is_assumed_as_nccl_does) {
  const std::string text = system_of(cpu(
      0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"0\"/>", "link_speed=\"\" link_width=\"0\"")));
  for (const auto view : {Paths::View::physical, Paths::View::nccl})
    expect(read(text), view, "gpu0", "numa0", PathClass::phb, 12);
  cr_assert(has_gap(read(text), "gpu0", "PCIe speed and width are not known"));
  cr_assert(written(read_all(text)).find("link_speed=\"\" link_width=\"0\"") != std::string::npos,
            "no guess is written as a fact");
}

Test(nccl_xml_traps, a_port_of_200_terabits_was_meant_in_kilobits) {
  const std::string text = system_of(
      cpu(0, pci("0000:20:00.0", "0x020000", net("cxi0", "speed=\"200000000\"")) + gpu(0)));
  const Machine m = read(text);
  cr_assert(find(m, "cxi0")->line_rate->value == gigabits(200));
  cr_assert(find(m, "cxi0")->line_rate->from == Provenance::assumed);
  cr_assert(has_gap(m, "cxi0", "more than any port has; NCCL believes it"));
  expect(m, Paths::View::physical, "numa0", "cxi0", PathClass::phb, 25);
  expect(m, Paths::View::nccl, "numa0", "cxi0", PathClass::phb, 48);
  cr_assert(written(read_all(text)).find("speed=\"200000000\"") != std::string::npos);
}

Test(nccl_xml_traps, thirty_two_nics_are_thirty_two) {
  std::string nics;
  for (int i = 0; i < 32; i++)
    nics += pci(fmt::format("0000:{:02x}:00.0", 0x40 + i), "0x020000",
                net(fmt::format("rdma{}", i), "speed=\"100000\" guid=\"0x7\""));
  const std::string text = system_of(cpu(0, gpu(0) + nics));
  cr_assert(read(text).count(DeviceKind::nic) == 32 && read(text).count(DeviceKind::port) == 32);
  cr_assert(difference(read(text), read(written(read_all(text)))).empty());
}
