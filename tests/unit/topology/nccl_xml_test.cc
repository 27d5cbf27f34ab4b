// SPDX-License-Identifier: Apache-2.0
// NCCL's XML both ways: several hosts, what is kept for writing again, and the spelling that NCCL's
// own parser takes.
#include <criterion/criterion.h>

#include "knobs.h"
#include "nccl_xml_texts.h"
#include "topology/builder.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

std::string refused(const Topology& topology) {
  const auto text = nccl_xml_text(topology);
  cr_assert_not(text.has_value());
  return text.error().text;
}

}  // namespace

// Merged, they would have twice the links of others, which would be blamed.
Test(nccl_xml, a_second_root_element_is_an_error) {
  const std::string one = system_of(cpu(0, gpu(0)));
  const auto both = read_nccl_xml(one + "\n" + one, "test");
  cr_assert(!both && both.error().text.starts_with("line 2: <system> after the root element"), "%s",
            both ? "" : both.error().text.c_str());
}

// NCCL asks sysfs for ids that are not there, and takes those that are for true.
Test(nccl_xml, ids_that_nobody_told_are_not_written) {
  const Machine machine = read(system_of(
      cpu(0, pci("0000:20:00.0", "0x060400", "", "vendor=\"0x1000\" device=\"0xc030\"") +
                 pci("0000:30:00.0", "0x060400", "",
                     "vendor=\"0x1b36\" device=\"0x000c\" subsystem_vendor=\"0x0000\""))));
  const std::string text = written(single_host(machine));
  cr_assert(text.find("device=\"0xc030\"/>") != std::string::npos, "%s", text.c_str());
  cr_assert(text.find("subsystem_vendor=\"0x0000\"/>") != std::string::npos, "as it was told");
}

Test(nccl_xml, a_file_too_large_for_nccl_is_told_of_as_such) {
  Builder builder("large", "test");
  const uint32_t numa = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
  for (uint32_t i = 0; i < 256; i++)
    builder.see(
        {.kind = DeviceKind::pci_switch,
         .parent = builder.see({.kind = DeviceKind::pci_switch,
                                .parent = numa,
                                .identity = {.bdf = Bdf{1, static_cast<uint8_t>(i / 4), 0, 0}}}),
         .identity = {.bdf = Bdf{2, static_cast<uint8_t>(i), 0, 0}}});
  const auto text = nccl_xml_text(single_host(*std::move(builder).build()));
  cr_assert(!text && text.error().text ==
                         "NCCL's XML of it would have 322 elements; NCCL's parser "
                         "takes 255 of a file at most",
            "%s", text ? "" : text.error().text.c_str());
}

Test(nccl_xml, two_gpus_or_nics_of_one_busid_are_an_error) {
  const auto two = read_host(system_of(cpu(0, gpu(0) + "\n" + gpu(1) + "\n" + gpu(0))));
  cr_assert(
      !two && two.error().text == "line 3: the GPU has the busid 0000:10:00.0 of that in line 1",
      "%s", two ? "" : two.error().text.c_str());
  const auto nic = [](const char* name) { return pci("0000:20:00.0", "0x020000", net(name, "")); };
  const auto nics = read_host(system_of(cpu(0, nic("mlx5_0") + nic("mlx5_1"))));
  cr_assert(!nics && nics.error().text.find("the NIC has the busid") != std::string::npos);
  const Machine same = read(system_of(cpu(0, nic("mlx5_0")) + cpu(1, nic("mlx5_0"))));
  cr_assert(same.count(DeviceKind::nic) == 1, "listed under every CPU");
}

Test(nccl_xml, a_number_that_is_none_is_an_error_that_names_its_line) {
  const auto error = [](const std::string& text) {
    const auto machine = read_host(text);
    cr_assert(!machine.has_value(), "%s", text.c_str());
    return machine.error().text;
  };
  const auto with_dev = [](const std::string& dev) {
    return system_of(
        cpu(0, pci("0000:10:00.0", "0x030200", fmt::format("<gpu dev=\"{}\"/>", dev))));
  };
  cr_assert(error(with_dev("16 GT/s")) ==
            "line 1: <gpu>: dev=\"16 GT/s\" is no number from 0 to 1048576");
  cr_assert(error(with_dev("")) == "line 1: <gpu>: dev=\"\" is no number; NCCL takes it for 0");
  const std::string link = "<nvlink target=\"0000:11:00.0\" count=\"\" tclass=\"0x030200\"/>";
  cr_assert(error(system_of(cpu(0, gpu(0, link) + gpu(1)))) ==
            "line 1: <nvlink>: count=\"\" is no number; NCCL takes it for 0");
}

Test(nccl_xml, whole_numbers_are_read_as_nccl_does) {
  const Machine m = read(system_of(
      cpu(0, pci("0000:10:00.0", "0x030200",
                 "<gpu dev=\"0x1\" sm=\"0x50\"><nvlink target=\"0000:11:00.0\" count=\"010\" "
                 "tclass=\"0x030200\"/></gpu>",
                 "link_speed=\"16.0 GT/s PCIe\" link_width=\"0x10\"") +
                 pci("0000:11:00.0", "0x030200",
                     "<gpu dev=\"2\" sm=\"80\"><nvlink target=\"0000:10:00.0\" count=\"8 \" "
                     "tclass=\"0x030200\"/></gpu>",
                     "link_speed=\"16.0 GT/s PCIe\" link_width=\"16 \""))));
  cr_assert(nvlinks(m) == 8 && m.gaps().empty());
  for (const char* label : {"gpu1", "gpu2"}) {
    const Device* const gpu = find(m, label);
    cr_assert(gpu != nullptr, "%s", label);
    cr_assert(gpu->pcie_lanes->value == 16 && gpu->compute_capability->value == 80);
  }
  const auto odd = read_host("<system version=\"1\"><cpu numaid=\"08\"/></system>");
  cr_assert(!odd.has_value(), "to NCCL that is 0");
}

Test(nccl_xml_hosts, hosts_of_a_file_are_apart_and_nvswitches_make_them_a_domain) {
  const Topology t = read_all(read_file(golden("two-hosts.xml")));
  cr_assert(t.hosts.size() == 2);
  cr_assert(t.hosts[0].name == "mini-0" && t.hosts[1].name == "mini-1");
  cr_assert(t.hosts[0].domain == "mini" && t.hosts[1].domain == "mini");
  for (const Host& host : t.hosts) cr_assert(host.machine->count(DeviceKind::gpu) == 1);
  const Topology again = read_all(written(t));
  cr_assert(again.hosts.size() == 2 && again.hosts[1].domain == "mini");
  for (size_t i = 0; i < 2; i++)
    cr_assert(difference(*t.hosts[i].machine, *again.hosts[i].machine).empty());
}

Test(nccl_xml_hosts, hosts_that_nothing_joins_are_no_domain_and_are_not_written_as_one) {
  const Topology t = read_all(system_of(cpu(0, gpu(0), "host_hash=\"0x1\"") + cpu(1, "") +
                                        cpu(0, gpu(0, to_switch(18)), "host_hash=\"0x2\"")));
  cr_assert(t.hosts.size() == 2);
  cr_assert(t.hosts[0].machine->count(DeviceKind::numa) == 2,
            "a cpu without a hash joins the last");
  cr_assert(t.hosts[0].domain.empty() && t.hosts[1].domain.empty());
  cr_assert(refused(t).find("one NVLink domain") != std::string::npos);
}

Test(nccl_xml_hosts, hosts_that_share_a_machine_get_hashes_of_their_own) {
  Topology t = *read_synthetic("2x dgx-h100");
  for (Host& host : t.hosts) host.domain = "rack";
  const std::string text = written(t);
  cr_assert(text == written(t));
  const Topology again = read_all(text);
  cr_assert(again.hosts.size() == 2 && again.hosts[0].domain == "rack");
  cr_assert(again.hosts[1].machine->count(DeviceKind::gpu) == 8);
}

// RCCL's files tell of xGMI how many links, and what a GPU is.
Test(nccl_xml, a_port_has_the_guid_of_its_card_in_the_order_of_bytes_that_nccl_writes) {
  const auto guid = [](Property<uint64_t> of_card) {
    Builder builder("host", "test");
    Device nic{.kind = DeviceKind::nic, .parent = builder.see(numa(0))};
    nic.identity.bdf = Bdf{0, 0x40, 0, 0};
    nic.sys_image_guid = of_card;
    Device port{.kind = DeviceKind::port, .parent = builder.see(nic)};
    port.identity = {.guid = 0xa088c20300ab12cd, .number = 1, .name = "mlx5_0"};
    builder.see(port);
    const std::string text = written(single_host(*std::move(builder).build()));
    const size_t at = text.find("guid=") + 6;
    return text.substr(at, text.find('"', at) - at);
  };
  cr_assert(guid(known(uint64_t{0xa088c20300ab0010}, Provenance::driver)) == "0x1000ab0003c288a0");
  cr_assert(guid({}) == "0xcd12ab0003c288a0");
}

Test(nccl_xml, the_guid_of_a_file_is_the_cards_and_is_written_as_it_was_told) {
  const auto nets = [](const char* one, const char* other) {
    return system_of(
        cpu(0, "<pci busid=\"0000:40:00.0\" class=\"0x020700\"><nic>" +
                   fmt::format("<net name=\"a\" port=\"1\" speed=\"1000\" guid=\"{}\"/>"
                               "<net name=\"b\" port=\"2\" speed=\"1000\" guid=\"{}\"/>",
                               one, other) +
                   "</nic></pci>"));
  };
  struct Told {
    const char *one, *other;
    std::optional<uint64_t> card;
  };
  for (const Told& told : {Told{"0x1000ab0003c288a0", "0x1000ab0003c288a0", 0xa088c20300ab0010},
                           Told{"0x1000ab0003c288a0", "0x1100ab0003c288a0", 0xa088c20300ab0010},
                           Told{"0x1000ab0003c288a0", "0x7", 0xa088c20300ab0010},
                           Told{"0xff00000000000000", "0xff00000000000000", 0xff},
                           Told{"0x7", "0x8", std::nullopt}, Told{"0x0", "0x0", std::nullopt}}) {
    const std::string text = nets(told.one, told.other);
    const Machine m = read(text);
    const auto& card = find(m, "nic0")->sys_image_guid;
    cr_assert(card.has_value() == told.card.has_value(), "%s", told.one);
    cr_assert(!card || (card->value == *told.card && card->from == Provenance::file));
    const std::string again = written(read_all(text));
    cr_assert(again.find(fmt::format("guid=\"{}\"", told.one)) != std::string::npos);
    cr_assert(again.find(fmt::format("guid=\"{}\"", told.other)) != std::string::npos, "%s",
              again.c_str());
    cr_assert(difference(m, read(again)).empty());
  }
}

Test(nccl_xml, eight_nics_of_one_guid_are_eight) {
  std::string nics;
  for (int i = 0; i < 8; i++)
    nics += pci(fmt::format("0000:{:02x}:00.0", 0x40 + i), "0x020700",
                net(fmt::format("mlx5_{}", i), "speed=\"100000\" guid=\"0x1000ab0003c288a0\""));
  const std::string text = system_of(cpu(0, gpu(0) + nics));
  const Machine m = read(text);
  cr_assert(m.count(DeviceKind::nic) == 8 && m.count(DeviceKind::port) == 8);
  for (const uint32_t nic : m.of_kind(DeviceKind::nic))
    cr_assert(m.devices()[nic].sys_image_guid->value == 0xa088c20300ab0010);
  cr_assert(difference(m, read(written(read_all(text)))).empty());
}

Test(nccl_xml, of_links_to_one_end_with_several_classes_the_first_counts_and_a_gap_says_so) {
  const auto link = [](const char* tclass) {
    return fmt::format("<nvlink target=\"0000:11:00.0\" count=\"1\" tclass=\"{}\"/>", tclass);
  };
  for (const auto& [one, other] : {std::pair("0x030200", "0x030000"), {"0x030000", "0x030200"}}) {
    const std::string text =
        system_of(cpu(0, gpu(0, link(one) + link(other)) + gpu(1, nvlink(0, 2))));
    const Machine m = read(text);
    cr_assert(find_link(m, "gpu0", "gpu1")->count == 2);
    cr_assert(has_gap(m, "gpu0", fmt::format("of class \"{}\" and of class \"{}\"", one, other)));
    const std::string again = written(read_all(text));
    cr_assert(again.find(fmt::format("target=\"0000:11:00.0\" count=\"2\" tclass=\"{}\"", one)) !=
                  std::string::npos,
              "%s", again.c_str());
    cr_assert_not(has_gap(read(again), "gpu0", "of class"), "one link is told");
  }
  const Machine alike =
      read(system_of(cpu(0, gpu(0, link("0x030200") + link("0x030200")) + gpu(1, nvlink(0, 2)))));
  cr_assert_not(has_gap(alike, "gpu0", "of class"));
}

// Else each rank of NCCL looks up those of its own GPU's node alone, and takes its node for
// another.
Test(nccl_xml, of_several_nodes_it_is_written_that_no_cpus_are_known) {
  const auto count = [](const std::string& text) {
    size_t found = 0;
    for (size_t at = text.find("affinity=\"\""); at != text.npos;
         at = text.find("affinity=\"\"", at + 1))
      found++;
    return found;
  };
  const std::string two = written(*read_synthetic("dgx-h100"));
  cr_assert(count(two) == 2);
  cr_assert_not(find(read(two), "numa0")->attributes.contains("cpu.affinity"));
  cr_assert(count(written(read_all(system_of(cpu(0, gpu(0)))))) == 0);
  const std::string told = system_of(cpu(0, gpu(0), "affinity=\"ff\"") + cpu(1, gpu(1)));
  cr_assert(count(written(read_all(told))) == 1 &&
            written(read_all(told)).find("affinity=\"ff\"") != std::string::npos);
}

Test(nccl_xml, of_a_bare_pci_function_it_is_said_that_nothing_is_told) {
  const auto m = read(system_of(
      cpu(0, pci("0000:10:00.0", "0x030200", "") + pci("0000:40:00.0", "0x020000", "") + gpu(1) +
                 pci("0000:41:00.0", "0x020000", net("mlx5_1", "speed=\"400000\"")))));
  cr_assert(has_gap(m, "gpu0", "nothing is told of its NVLinks"));
  cr_assert(has_gap(m, "nic0", "nothing is told of its ports"));
  cr_assert(m.gaps().size() == 2, "the others are told of");
}

Test(nccl_xml_kept, what_has_no_property_is_kept_and_written_again) {
  const std::string text = system_of(
      cpu(0,
          "<pci busid=\"0000:A1:00.0\" class=\"0x020700\" colour=\"red\">"
          "<nic><net name=\"mlx5_0\" dev=\"3\" speed=\"400000\" port=\"1\" guid=\"0x0\" "
          "maxconn=\"128\" coll=\"1\" keep=\"1\" rail=\"2\" plane=\"1\"/></nic><beam to=\"me\"/>"
          "</pci>",
          "affinity=\"ffff\" host_hash=\"0xab\""));
  const Machine m = read(text);
  const Device &port = *find(m, "mlx5_0"), &nic = *find(m, "nic0"), &node = *find(m, "numa0");
  cr_assert(port.attributes.at("net.maxconn") == "128" && port.attributes.at("net.coll") == "1");
  cr_assert(port.attributes.at("net.plane") == "1" && port.rail->value == 2);
  cr_assert(port.attributes.at("net.guid") == "0x0" && !port.identity.guid);
  cr_assert(nic.attributes.at("pci.colour") == "red" && nic.pci_class->value == 0x020700);
  cr_assert(nic.elements == std::vector<std::string>{"<beam to=\"me\"/>"});
  cr_assert(has_gap(m, "line 1", "<beam>") && has_gap(m, "<pci>", "colour"));
  cr_assert(node.attributes.at("cpu.affinity") == "ffff");
  cr_assert(node.attributes.at("cpu.host_hash") == "0xab");
  const Machine again = read(written(read_all(text)));
  cr_assert(difference(m, again).empty(), "%s", difference(m, again).c_str());
}

Test(nccl_xml_kept, what_is_not_known_of_the_system_and_of_links_is_written_where_it_was) {
  const std::string links =
      "<nvlink target=\"0000:11:00.0\" count=\"4\" tclass=\"0x030200\" colour=\"red\">"
      "<lane n=\"1\"/></nvlink><c2c bw=\"1000\" count=\"2\"><lane n=\"2\"/></c2c>";
  const std::string text = "<system version=\"1\" future=\"7\">" +
                           cpu(0, gpu(0, links) + gpu(1, nvlink(0, 4))) +
                           "<rack u=\"3\"/></system>";
  const Machine m = read(text);
  for (const char* missing : {"attribute future", "attribute colour", "<lane>", "<rack>"})
    cr_assert(std::ranges::any_of(
                  m.gaps(),
                  [&](const Gap& gap) { return gap.missing.find(missing) != std::string::npos; }),
              "%s", missing);
  const std::string again = written(read_all(text));
  for (const char* kept :
       {"<system version=\"1\" name=\"host\" future=\"7\">", "  <rack u=\"3\"/>\n</system>",
        "tclass=\"0x030200\" colour=\"red\">\n          <lane n=\"1\"/>\n",
        "<c2c bw=\"1000\" count=\"2\">\n          <lane n=\"2\"/>\n"})
    cr_assert(again.find(kept) != std::string::npos, "%s in %s", kept, again.c_str());
  cr_assert(nvlinks(read(again)) == 4);
  cr_assert(written(read_all(again)) == again);
}

Test(nccl_xml_kept, what_is_told_of_a_link_that_is_written_otherwise_makes_no_second_link) {
  const std::string text =
      system_of(cpu(0, gpu(0,
                           "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\" "
                           "colour=\"red\"/>")));
  const std::string again = written(read_all(text));
  cr_assert(again.find("what is told beyond its end of a link of gpu0") != std::string::npos);
  cr_assert(nvlinks(read(again)) == 18 && again.find("colour") == std::string::npos);
}

Test(nccl_xml_kept, classes_are_written_in_the_words_in_which_they_were_told) {
  for (const char* words : {"0x03", "0x0302", "030200", "0x30200", "0x030200", ""}) {
    const auto gpu = [&](int n, int to, const char* tclass) {
      return pci(fmt::format("0000:{:02x}:00.0", 0x10 + n), words,
                 fmt::format("<gpu dev=\"{}\" sm=\"80\"><nvlink target=\"0000:{:02x}:00.0\" "
                             "count=\"4\" tclass=\"{}\"/></gpu>",
                             n, 0x10 + to, tclass));
    };
    for (const char* tclass : {"0x03", "0x030200"}) {
      const std::string text = system_of(cpu(0, gpu(0, 1, tclass) + gpu(1, 0, tclass)));
      const std::string again = written(read_all(text));
      for (const auto& kept : {fmt::format("<pci busid=\"0000:10:00.0\" class=\"{}\" ", words),
                               fmt::format("\"0000:10:00.0\" count=\"4\" tclass=\"{}\"/>", tclass),
                               fmt::format("\"0000:11:00.0\" count=\"4\" tclass=\"{}\"/>", tclass)})
        cr_assert(again.find(kept) != std::string::npos, "%s in %s", kept.c_str(), again.c_str());
      cr_assert(difference(read(text), read(again)).empty());
    }
  }
}

Test(nccl_xml_kept, what_is_told_of_two_links_to_one_target_is_left_out_of_the_second) {
  const auto link = [](const char* colour) {
    return fmt::format(
        "<nvlink target=\"0000:11:00.0\" count=\"2\" tclass=\"0x030200\" colour=\"{}\"/>", colour);
  };
  const auto topology =
      read_all(system_of(cpu(0, gpu(0, link("red") + link("blue")) + gpu(1, nvlink(0, 4)))));
  const auto xml = write_nccl_xml(topology);
  cr_assert(xml.has_value() && xml->text.find("count=\"4\" tclass=\"0x030200\" colour=\"red\"/>") !=
                                   std::string::npos);
  cr_assert(xml->left_out.find("colour=\"blue\" of another link of gpu0") != std::string::npos,
            "%s", xml->left_out.c_str());
}

Test(nccl_xml_kept, nics_of_one_element_that_is_no_pci_function_stay_in_it) {
  const auto nic = [](const char* attributes, std::initializer_list<const char*> names) {
    std::string nets;
    for (const char* name : names)
      nets += fmt::format("<net name=\"{}\" dev=\"0\" port=\"1\" guid=\"0x1\"/>", name);
    return fmt::format("<nic{}>{}<fan/></nic>", attributes, nets);
  };
  const std::string text =
      system_of(cpu(0, nic(" colour=\"red\"", {"a", "b"}) + nic(" colour=\"blue\"", {"c", "d"})));
  const std::string again = written(read_all(text));
  size_t at = 0;
  for (const char* next : {"<nic colour=\"red\">", "name=\"a\"", "<fan/>", "name=\"b\"", "</nic>",
                           "<nic colour=\"blue\">", "name=\"c\"", "name=\"d\"", "</nic>"}) {
    at = again.find(next, at);
    cr_assert(at != std::string::npos, "%s in %s", next, again.c_str());
  }
  cr_assert(again.find("<nic", at) == std::string::npos);
  cr_assert(again.find("red") == again.rfind("red") && again.find("blue") == again.rfind("blue"));
}

Test(nccl_xml_kept, an_amd_family_is_cpuids_and_the_files_number_is_written_again) {
  const std::string text = system_of(
      "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" "
      "modelid=\"49\"/>");
  cr_assert(find(read(text), "numa0")->cpu->value.family == 23);
  cr_assert(written(read_all(text)).find("familyid=\"143\"") != std::string::npos);
  Builder builder("host", "test");
  Device node{.kind = DeviceKind::numa};
  node.cpu = known(CpuModel{"x86_64", "AuthenticAMD", 25, 17}, Provenance::measured);
  builder.see(node);
  cr_assert(written(single_host(*std::move(builder).build())).find("familyid=\"25\"") !=
            std::string::npos);
}

Test(nccl_xml_writer, has_the_spelling_that_nccls_parser_takes) {
  const std::string text = written(read_all(read_file(golden("mini.xml"))));
  cr_assert(
      text.starts_with("<system version=\"1\" name=\"mini\">\n  <cpu host_hash=\"0x1\" numaid="));
  for (const char* bad : {"'", "&", " />", "<?", "\" \"", "=\"\"\"", "\t"})
    cr_assert(text.find(bad) == std::string::npos, "%s", bad);
  cr_assert(text.find("link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"") != std::string::npos);
}

Test(nccl_xml_writer, invented_bus_ids_are_said_to_be) {
  const std::string text = written(*read_synthetic("dgx-h100"));
  cr_assert(
      text.starts_with("<!-- Bus ids that nobody told and that are invented here: ffff:00:00.0"));
  cr_assert(read(text).count(DeviceKind::nvswitch) == 4);
  cr_assert(nvlinks(read(text)) == 8 * 18);
}

Test(nccl_xml_writer, a_gpu_stands_for_its_partitions_whether_or_not_they_tell_its_address) {
  for (const bool addressed : {true, false}) {
    Builder builder("host", "test");
    const uint32_t node = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
    const Bdf bdf{0, 0x10, 0, 0};
    const uint32_t whole =
        builder.see({.kind = DeviceKind::gpu, .parent = node, .identity = {.bdf = bdf}});
    for (uint32_t slot = 0; slot < 3; slot++) {
      Device part{.kind = DeviceKind::gpu, .parent = whole};
      if (addressed) part.identity = {.bdf = bdf, .uuid = "MIG", .number = slot};
      if (addressed) part.identity.uuid += std::to_string(slot);
      builder.see(part);
    }
    const std::string text = written(single_host(*std::move(builder).build()));
    cr_assert(text.find("gpu1 (a partition of gpu0)") != std::string::npos);
    cr_assert(text.find("ffff:") == std::string::npos, "%s", text.c_str());
    cr_assert(read(text).count(DeviceKind::gpu) == 1);
  }
}

Test(nccl_xml_writer, what_nccls_parser_does_not_take_is_refused_by_name) {
  const auto with_name = [](const std::string& name) {
    return refused(read_all(system_of(cpu(0, net(name, "speed=\"1000\"")))));
  };
  cr_assert(with_name("a&quot;b").find("name=\"a\"b\" has a character") != std::string::npos);
  cr_assert(with_name("a&amp;b").find("NCCL's parser does not take") != std::string::npos);
  cr_assert(with_name(std::string(254, 'x')).find("254 characters") != std::string::npos);
  written(read_all(system_of(cpu(0, net(std::string(253, 'x'), "")))));
  std::string many;
  for (int i = 0; i < 130; i++) many += pci(fmt::format("0001:{:02x}:00.0", i), "0x020000", "");
  cr_assert(refused(read_all(system_of(cpu(0, many)))).find("has 130 elements") !=
            std::string::npos);
  std::string gpus;
  for (int i = 0; i < 64; i++) gpus += gpu(i, to_switch(18));
  cr_assert(refused(read_all(system_of(cpu(0, gpus) + cpu(1, many.substr(0, many.size() / 2)))))
                .find("takes 255 of a file") != std::string::npos);
  std::string attributes;
  for (int i = 0; i < 17; i++) attributes += fmt::format(" a{}=\"1\"", i);
  cr_assert(refused(read_all(system_of(cpu(0, "", attributes)))).find("attributes") !=
            std::string::npos);
}

namespace {

// What an XML of NCCL's can tell, drawn at random.
class RandomMachine {
 public:
  explicit RandomMachine(Random& random) : random_(random), builder_("any", "test") {}

  Machine make() {
    for (uint32_t i = 0; i < 1 + below(3); i++) {
      Device node{.kind = DeviceKind::numa};
      node.identity.number = i;
      node.cpu = known(CpuModel{"x86_64", "GenuineIntel", 6, static_cast<int>(below(200))},
                       Provenance::file);
      const uint32_t numa = builder_.see(node);
      for (uint32_t n = below(5); n > 0; n--)
        if (below(5) == 0)
          add_bare_nic(numa);
        else
          add_pci(numa, numa, 0);
    }
    link_gpus();
    return *std::move(builder_).build();
  }

 private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  Device function(DeviceKind kind, uint32_t parent, uint32_t pci_class) {
    Device d{.kind = kind, .parent = parent};
    d.identity.bdf = Bdf{0, static_cast<uint8_t>(bus_ / 32), static_cast<uint8_t>(bus_ % 32), 0};
    bus_++;
    d.pci_class = known(pci_class, Provenance::file);
    constexpr double kSpeeds[] = {8, 16, 32, 64};
    if (below(8) != 0) d.pcie_speed = known(kSpeeds[below(4)], Provenance::file);
    if (below(8) != 0) d.pcie_lanes = known(1 << below(5), Provenance::file);
    if (below(2) != 0)
      d.pci_ids =
          known(PciIds{0x15b3, static_cast<uint16_t>(below(65536)), 1, 2}, Provenance::file);
    return d;
  }

  void add_pci(uint32_t parent, uint32_t numa, int depth) {
    const uint32_t kind = below(3);
    if (kind == 0 && depth < 4) {
      const uint32_t bridge = builder_.see(function(DeviceKind::pci_switch, parent, 0x060400));
      for (uint32_t n = below(4); n > 0; n--) add_pci(bridge, numa, depth + 1);
    } else if (kind == 1) {
      add_nic(parent);
    } else {
      add_gpu(parent, numa);
    }
  }

  void add_nic(uint32_t parent) {
    const uint32_t nic = builder_.see(function(DeviceKind::nic, parent, 0x020000));
    for (uint32_t i = 0; i < below(3); i++) {
      Device port{.kind = DeviceKind::port, .parent = nic};
      port.identity.name = fmt::format("mlx5_{}", nics_++);
      port.identity.number = i;
      if (below(2) != 0) port.identity.guid = 1 + below(1000);
      if (below(4) != 0) port.line_rate = known(gigabits(100 << below(4)), Provenance::file);
      if (below(2) != 0) port.gpu_direct = known(below(2) != 0, Provenance::file);
      if (below(2) != 0) port.rail = known(static_cast<int>(below(8)), Provenance::file);
      if (below(2) != 0) port.attributes["net.maxconn"] = std::to_string(below(1000));
      builder_.see(port);
    }
  }

  void add_bare_nic(uint32_t parent) {
    Device bare{.kind = DeviceKind::nic, .parent = parent};
    bare.identity.name = fmt::format("bond{}", nics_++);
    Device port{.kind = DeviceKind::port, .parent = builder_.see(bare)};
    port.identity.name = bare.identity.name;
    port.identity.number = 1;
    builder_.see(port);
  }

  void add_gpu(uint32_t parent, uint32_t numa) {
    Device d = function(DeviceKind::gpu, parent, 0x030200);
    d.index = known(static_cast<int>(gpus_.size()), Provenance::file);
    d.label = fmt::format("gpu{}", gpus_.size());
    d.compute_capability = known(90, Provenance::file);
    gpus_.push_back(builder_.see(d));
    if (below(4) == 0)
      builder_.link(gpus_.back(), numa,
                    {LinkType::c2c, 10, known(gigabytes(450), Provenance::file)});
  }

  void link_gpus() {
    for (size_t i = 0; i < gpus_.size(); i++) {
      if (below(2) != 0)
        builder_.link_to_address(gpus_[i], Bdf{0, 0xfe, 0, 0}, DeviceKind::nvswitch,
                                 {LinkType::nvlink, 1 + below(8)});
      if (i > 0 && below(2) != 0)
        builder_.link(gpus_[i], gpus_[below(static_cast<uint32_t>(i))],
                      {LinkType::nvlink, 1 + below(18)});
    }
  }

  Random& random_;
  Builder builder_;
  std::vector<uint32_t> gpus_;
  uint32_t bus_ = 0, nics_ = 0;
};

}  // namespace

Test(nccl_xml_writer, any_machine_is_the_same_when_written_and_read) {
  Random random = seeded_random();
  for (int round = 0; round < rounds(300); round++) {
    const Machine m = RandomMachine(random).make();
    const std::string text = written(single_host(m));
    const Machine again = read(text);
    cr_assert(difference(m, again).empty(), "%s\n%s", difference(m, again).c_str(), text.c_str());
    cr_assert(written(single_host(again)) == text);
  }
}
