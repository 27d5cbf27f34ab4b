// SPDX-License-Identifier: Apache-2.0
#include "topology/format/formats.h"

#include <criterion/criterion.h>

#include <map>
#include <nlohmann/json.hpp>

#include "knobs.h"
#include "machines.h"
#include "one_host.h"
#include "topology/builder.h"
#include "topology/path.h"

using namespace crosstie;
using namespace crosstie::test;
namespace fs = std::filesystem;

namespace {

Machine read(const std::string& text) {
  auto machine = read_host(text);
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

std::vector<fs::path> fixtures() {
  std::vector<fs::path> files = {golden("mini.xml"), golden("odd.xml")};
  if (fs::exists(recorded()))
    for (const auto& entry : fs::directory_iterator(recorded())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// Whatever the text: a Machine that keeps its promises, or an error of one line that is no
// promise broken.
void expect_machine_or_error(const std::string& text, const std::string& what) {
  const auto machine = read_host(text);
  if (machine)
    cr_assert(validate(*machine).has_value(), "%s", what.c_str());
  else
    cr_assert(machine.error().code != Code::internal &&
                  machine.error().text.find('\n') == std::string::npos,
              "%s: %s", what.c_str(), machine.error().text.c_str());
}

std::string many_devices(int count) {
  std::string text = "<system version=\"1\">\n<cpu numaid=\"0\">\n";
  for (int i = 0; i < count; i++)
    text += fmt::format(
        "<pci busid=\"{:04x}:{:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
        "subsystem_vendor=\"0x10de\" subsystem_device=\"0x16c1\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">{:200}<gpu dev=\"{}\" sm=\"90\"><nvlink target=\"ffff:01:00.0\" "
        "count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n",
        i / 256, i % 256, "", i);
  return text + "</cpu>\n</system>\n";
}

}  // namespace

Test(nccl_xml, every_fact_of_a_file_is_in_the_machine) {
  const Machine m = read(read_file(golden("mini.xml")));
  cr_assert(m.name() == "mini");
  const Device& gpu = *find(m, "gpu1");
  cr_assert(to_text(*gpu.identity.bdf) == "0000:92:00.0");
  cr_assert(gpu.compute_capability->value == 90);
  cr_assert(gpu.gpu_direct->value);
  const Device& port = *find(m, "mlx5_1");
  cr_assert(port.line_rate->value == gigabits(400));
  cr_assert(port.latency->value == microseconds(1.5));
  cr_assert(!port.identity.guid, "it is the card's");
  cr_assert(m.devices()[port.parent].sys_image_guid->value == 0xce12ab0003c288a0);
  cr_assert(*port.identity.number == 1);
  const Device& node = *find(m, "numa0");
  cr_assert(node.cpu->value == (CpuModel{"x86_64", "GenuineIntel", 6, 143}));
  cr_assert(find_link(m, "gpu0", "nvswitch0")->bandwidth->value == gigabytes(20.6 * 18));
  cr_assert(find_link(m, "gpu0", "switch0")->bandwidth->value == gigabytes(48));
  cr_assert(m.gaps().empty());
}

Test(nccl_xml, what_a_file_leaves_out_is_a_gap) {
  const Machine m = read(read_file(golden("odd.xml")));
  cr_assert(has_gap(m, "gpu0", "PCIe speed and width"));
  cr_assert(has_gap(m, "gpu0", "its own end"));
  cr_assert(has_gap(m, "gpu0", "0000:bd:00.0"));
  cr_assert(has_gap(m, "eth1", "speed"));
  cr_assert(has_gap(m, "line 22", "<teleport>"));
  cr_assert(has_gap(m, "numa1", "its CPU"));
  cr_assert(m.count(DeviceKind::port) == 2, "docker0 is one though listed twice");
}

Test(nccl_xml, chips_joined_to_the_cpu_are_read) {
  const Machine m = read(
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\"><pci busid=\"0009:01:00.0\" "
      "class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\">"
      "<c2c bw=\"45000\" count=\"10\"/><nvlink target=\"0000:00:00.0\" count=\"3\" "
      "tclass=\"0x068001\"/></gpu></pci></cpu></system>");
  for (const Link& link : m.links()) {
    if (link.type == LinkType::c2c) cr_assert(link.bandwidth->value == gigabytes(450));
    if (link.type == LinkType::nvlink) cr_assert(link.count == 3);
  }
  cr_assert(m.links().size() == 3);
}

Test(nccl_xml, switches_of_which_gpus_do_not_tell_the_address_are_one) {
  const Machine m = read(
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
      "<pci busid=\"0008:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"100\">"
      "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
      "<pci busid=\"0009:01:00.0\" class=\"0x030200\"><gpu dev=\"1\" sm=\"100\">"
      "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
      "</cpu></system>");
  cr_assert(m.count(DeviceKind::nvswitch) == 1);
  cr_assert(nvlinks(m) == 36);
  for (const Device& d : m.devices()) cr_assert(d.elements.empty(), "told by the link");
}

Test(nccl_xml, what_stands_for_not_known_counts_as_unknown) {
  const Machine m = read(
      "<system version=\"1\"><cpu numaid=\"-1\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" "
      "link_speed=\"Unknown\" link_width=\"0\"><gpu dev=\"0\" sm=\"0\" gdr=\"-1\">"
      "<nvlink target=\"0000:02:00.0\" count=\"0\" tclass=\"0x068000\"/></gpu></pci>"
      "<nic><net name=\"a\" speed=\"-1\" latency=\"\"/></nic></cpu></system>");
  cr_assert(has_gap(m, "gpu0", "PCIe speed and width"));
  cr_assert(has_gap(m, "gpu0", "count 0"));
  cr_assert(has_gap(m, "a", "its speed"));
  cr_assert(has_gap(m, "numa0", "number"));
}

Test(nccl_xml, a_number_that_cannot_be_is_an_error_that_names_it) {
  const std::string good =
      "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" familyid=\"6\" modelid=\"85\">"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\">\n<gpu dev=\"0\" sm=\"80\" gdr=\"1\"><nvlink target=\"0000:02:00.0\" "
      "count=\"2\" tclass=\"0x068000\"/><c2c bw=\"45000\" count=\"10\"/></gpu></pci>\n"
      "<nic><net name=\"a\" speed=\"200000\" port=\"1\" latency=\"1.5\" guid=\"0xf\"/></nic>"
      "</cpu></system>";
  cr_assert(read_host(good).has_value());
  for (const auto& [attribute, from] :
       std::vector<std::pair<std::string, std::string>>{{"numaid", "0"},
                                                        {"familyid", "6"},
                                                        {"modelid", "85"},
                                                        {"class", "0x030200"},
                                                        {"link_speed", "16.0 GT/s PCIe"},
                                                        {"link_width", "16"},
                                                        {"sm", "80"},
                                                        {"gdr", "1"},
                                                        {"count", "2"},
                                                        {"tclass", "0x068000"},
                                                        {"bw", "45000"},
                                                        {"count", "10"},
                                                        {"speed", "200000"},
                                                        {"port", "1"},
                                                        {"latency", "1.5"},
                                                        {"guid", "0xf"}})
    for (const char* to :
         {"4294967312", "99999999999999999999999", "-7", "inf", "nan", "1e308", "x", "16x"}) {
      // In words NCCL does not know a speed either.
      if (attribute == "link_speed" && std::string_view(to).ends_with('x')) continue;
      std::string text = good;
      const std::string old = fmt::format(" {}=\"{}\"", attribute, from);
      text.replace(text.find(old), old.size(), fmt::format(" {}=\"{}\"", attribute, to));
      const auto machine = read_host(text);
      const bool in_hex = from.starts_with("0x") && std::string_view(to) == "1e308";
      if (in_hex || (attribute == "guid" && std::string_view(to) == "4294967312")) continue;
      cr_assert_not(machine.has_value(), "%s=%s", attribute.c_str(), to);
      cr_assert(
          machine.error().text.find(fmt::format("{}=\"{}\"", attribute, to)) != std::string::npos,
          "%s", machine.error().text.c_str());
      cr_assert(machine.error().text.starts_with("line "));
    }
}

Test(nccl_xml, nesting_without_end_is_refused) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 100000; i++) text += "<pci busid=\"0000:00:00.0\">";
  for (int i = 0; i < 100000; i++) text += "</pci>";
  const auto machine = read_host(text + "</cpu></system>");
  cr_assert(machine.error().text.find("nested") != std::string::npos);
}

Test(nccl_xml, a_file_cut_anywhere_is_an_error_or_a_machine) {
  for (const fs::path& file : fixtures()) {
    const std::string text = read_file(file);
    const size_t step = file.native().find("golden") != std::string::npos ? 7 : 1024;
    for (size_t cut = 0; cut < text.size(); cut += step)
      expect_machine_or_error(text.substr(0, cut), fmt::format("{} cut at {}", file.native(), cut));
  }
}

Test(nccl_xml, a_file_without_some_of_its_lines_or_bytes_is_an_error_or_a_machine) {
  Random random = seeded_random();
  for (const fs::path& file : fixtures()) {
    for (int round = 0; round < rounds(20); round++) {
      std::istringstream lines(read_file(file));
      std::string text, line;
      while (std::getline(lines, line)) {
        if (random() % 16 == 0) continue;
        if (random() % 16 == 0)
          line[random() % (line.size() + 1)] = static_cast<char>('!' + random() % 90);
        text += line + "\n";
      }
      expect_machine_or_error(text, file.native());
    }
  }
}

// bench/topology tells the time.
Test(nccl_xml, twenty_thousand_devices_are_read) {
  const std::string text = many_devices(20000);
  cr_assert(text.size() > 10'000'000 / 2);
  cr_assert(read(text).count(DeviceKind::gpu) == 20000);
}

Test(synthetic, every_known_machine_is_whole_and_names_its_sources) {
  cr_assert(known_machines().size() >= 2);
  for (const KnownMachine& known : known_machines()) {
    const auto topology = read_synthetic(known.name);
    cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
    const Machine& m = *topology->hosts[0].machine;
    cr_assert(m.name() == known.name);
    cr_assert(m.gaps().empty(), "%s", m.gaps()[0].missing.c_str());
    cr_assert(m.count(DeviceKind::gpu) >= 4 && m.count(DeviceKind::nic) >= 1);
    // Servers of PCIe cards make do with fewer NICs.
    cr_assert(m.count(DeviceKind::nvswitch) == 0 ||
              m.count(DeviceKind::nic) == m.count(DeviceKind::gpu));
  }
}

Test(synthetic, gpus_have_as_many_nvlinks_as_their_makers_say) {
  struct Told {
    const char* machine;
    uint32_t gpus, nvlinks, nvswitches;
  };
  for (const Told& told :
       {Told{"dgx-h800", 8, 8, 4}, Told{"hgx-h200", 8, 18, 4}, Told{"hgx-b200", 8, 18, 2},
        Told{"hgx-b300", 8, 18, 2}, Told{"gb300-nvl72", 4, 18, 18}, Told{"pcie-a100x8", 8, 0, 0},
        Told{"pcie-3090x8", 8, 0, 0}, Told{"pcie-4090x8", 8, 0, 0}, Told{"dgx-v100", 8, 6, 0},
        Told{"a100x4-slingshot", 4, 12, 0}, Told{"gh200x4-slingshot", 4, 18, 0},
        Told{"mi300x8", 8, 0, 0}}) {
    const Machine m = *read_synthetic(told.machine)->hosts[0].machine;
    cr_expect(m.count(DeviceKind::gpu) == told.gpus, "%s", told.machine);
    std::map<uint32_t, uint32_t> links;  // by GPU
    for (const Link& link : m.links())
      if (link.type == LinkType::nvlink)
        for (const uint32_t end : {link.a, link.b}) links[end] += link.count;
    for (const uint32_t gpu : m.of_kind(DeviceKind::gpu))
      cr_expect(links[gpu] == told.nvlinks, "%s: %u", told.machine, links[gpu]);
    cr_expect(m.count(DeviceKind::nvswitch) == told.nvswitches, "%s", told.machine);
  }
}

Test(synthetic, a_dgx_1_is_a_cube_of_two_full_squares) {
  const Machine m = *read_synthetic("dgx-v100")->hosts[0].machine;
  for (int a = 0; a < 8; a++)
    for (int b = 0; b < a; b++) {
      const bool one_square = a / 4 == b / 4, edge_between = a == b + 4;
      cr_expect((find_link(m, fmt::format("gpu{}", a), fmt::format("gpu{}", b)) != nullptr) ==
                    (one_square || edge_between),
                "%d to %d", a, b);
    }
  cr_assert(find_link(m, "gpu0", "gpu3")->count == 2 && find_link(m, "gpu0", "gpu1")->count == 1);
}

Test(synthetic, gpus_of_amd_have_one_link_to_each_other_at_the_rate_of_their_kind) {
  const Machine m = *read_synthetic("mi300x8")->hosts[0].machine;
  const auto is_xgmi = [](const Link& link) { return link.type == LinkType::xgmi; };
  cr_assert(std::ranges::count_if(m.links(), is_xgmi) == 8 * 7 / 2);
  for (const Link& link : m.links())
    cr_assert(!is_xgmi(link) || (link.count == 1 && link.bandwidth->value == gigabytes(48)));
  cr_assert(find(m, "gpu0")->compute_capability->value == 94);
}

Test(synthetic, cards_without_peer_access_go_through_the_cpu_though_a_switch_joins_them) {
  const Machine m = *read_synthetic("pcie-4090x8")->hosts[0].machine;
  cr_assert(m.refusals().size() == 8 * 7 / 2);
  const Paths nccl(m, Paths::View::nccl), physical(m, Paths::View::physical);
  const auto gpus = m.of_kind(DeviceKind::gpu);
  // As in the log of NVIDIA/nccl-tests issue 307.
  const Path path = nccl.between(gpus[0], gpus[1]);
  cr_assert(path.type == PathClass::phb && path.hops == 4 && path.bandwidth == gigabytes(24));
  cr_assert(physical.between(gpus[0], gpus[1]).type == PathClass::pix);
  const auto xml = write_nccl_xml(single_host(m));
  cr_assert(xml->left_out.find("refused peer access of 28 pairs") != std::string::npos);
}

Test(machine_toml, links_from_gpu_to_gpu_are_told_in_one_way_and_once) {
  std::string good = read_file(golden("small.toml"));
  good.replace(good.find("gpus = [0]"), 10, "gpus = [0, 1, 5]");
  const auto with = [&](const std::string& links) {
    return read_machine_toml(good + "\n" + links + "\nsource = \"made up\"\n", "test");
  };
  const auto count = [](const Machine& m, LinkType type) {
    uint32_t links = 0;
    for (const Link& link : m.links()) links += link.type == type ? link.count : 0;
    return links;
  };
  cr_assert(count(*with("[nvlink]\nlinks_to_each_gpu = 4"), LinkType::nvlink) == 12);
  cr_assert(count(*with("[xgmi]\nlinks_to_each_gpu = 2"), LinkType::xgmi) == 6);
  const auto pairs = with("[nvlink]\npairs = [[0, 1, 2], [5, 0, 3]]");
  cr_assert(pairs.has_value(), "%s", pairs ? "" : pairs.error().text.c_str());
  cr_assert(find_link(*pairs, "gpu0", "gpu1")->count == 2);
  cr_assert(find_link(*pairs, "gpu0", "gpu5")->count == 3);
  cr_assert(find_link(*pairs, "gpu1", "gpu5") == nullptr);
  for (const auto& [links, error] : std::vector<std::pair<std::string, std::string>>{
           {"[nvlink]", "needs one way"},
           {"[nvlink]\nlinks_to_each_gpu = 1\nlinks_to_switch = [1]", "and has 2"},
           {"[xgmi]\nlinks_to_switch = [1]", "has no key 'links_to_switch'"},
           {"[xgmi]\nlinks_to_each_gpu = 0", "'links_to_each_gpu' must be"},
           {"[nvlink]\npairs = [[0, 1, 1], [1, 0, 1]]", "the pair of GPUs 0 and 1 is listed twice"},
           {"[nvlink]\npairs = [[0, 2, 1]]", "two GPUs and the number"},
           {"[nvlink]\npairs = [[0, 0, 1]]", "two GPUs and the number"},
           {"[nvlink]\npairs = [[0, 1, 0]]", "two GPUs and the number"},
           {"[nvlink]\npairs = [[0, 1]]", "two GPUs and the number"},
           {"[nvlink]\npairs = [0, 1, 1]", "two GPUs and the number"},
           {"[nvlink]\nlinks_to_each_gpu = 1\nhosts_in_domain = 2", "needs 'links_to_switch'"}}) {
    const auto machine = with(links);
    cr_assert_not(machine.has_value(), "%s", links.c_str());
    cr_assert(machine.error().text.find(error) != std::string::npos, "%s: %s", links.c_str(),
              machine.error().text.c_str());
  }
}

Test(machine_toml, what_a_gpu_and_a_nic_are_may_be_told_otherwise) {
  const std::string good = read_file(golden("small.toml"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return read_machine_toml(text, "test");
  };
  const auto amd = with("compute_capability = 89", "gcn = \"gfx90a:sramecc+:xnack-\"");
  cr_assert(find(*amd, "gpu0")->compute_capability->value == 90);
  for (const char* gcn : {"\"\"", "\"gfx\"", "\"x942\"", "\"9\"", "\"94 \"", "942"})
    cr_assert_not(with("compute_capability = 89", fmt::format("gcn = {}", gcn)).has_value(), "%s",
                  gcn);
  const auto efa =
      with("pcie_lanes = 8", "pcie_lanes = 8\npci_vendor = 0x1d0f\npci_device = 0xefa1");
  const Device& port = *find(*efa, "mlx5_0");
  cr_assert(efa->devices()[port.parent].pci_ids->value == (PciIds{0x1d0f, 0xefa1}));
  cr_assert_not(with("pcie_lanes = 8", "pcie_lanes = 8\npci_vendor = 0x1d0f").has_value());
  const auto deaf = with("pcie_lanes = 16", "pcie_lanes = 16\ngpu_direct = false");
  cr_assert(!find(*deaf, "gpu0")->gpu_direct->value);
  cr_assert_not(with("pcie_lanes = 16", "pcie_lanes = 16\npeer_access = 0").has_value());
}

Test(synthetic, a_dgx_h100_is_as_its_maker_says) {
  const Machine m = *read_synthetic("dgx-h100")->hosts[0].machine;
  cr_assert(nvlinks(m) == 8 * 18);
  cr_assert(m.count(DeviceKind::nvswitch) == 4);
  cr_assert(m.devices()[find(m, "gpu5")->parent].label == "switch5");
  const Device& nic = m.devices()[find(m, "mlx5_9")->parent];
  cr_assert(m.devices()[nic.parent].label == "switch5", "GPU 5 pairs with mlx5_9");
}

Test(synthetic, a_tray_of_a_gb200_nvl72_is_as_its_maker_says) {
  const Machine m = *read_synthetic("gb200-nvl72")->hosts[0].machine;
  cr_assert(m.count(DeviceKind::gpu) == 4 && m.count(DeviceKind::cpu) == 2);
  cr_assert(nvlinks(m) == 4 * 18 && m.count(DeviceKind::nvswitch) == 18);
  cr_assert(m.hosts_in_domain() == 18);
  const auto is_c2c = [](const Link& link) { return link.type == LinkType::c2c; };
  cr_assert(std::ranges::count_if(m.links(), is_c2c) == 4);
  for (const Link& link : m.links())
    cr_assert(!is_c2c(link) || link.bandwidth->value == gigabytes(225));
  cr_assert(to_text(*find(m, "gpu3")->identity.bdf) == "0019:01:00.0");
}

Test(synthetic, hosts_of_one_kind_share_their_machine) {
  const auto topology = read_synthetic("2048x dgx-h100");
  cr_assert(topology->hosts.size() == 2048);
  cr_assert(topology->hosts[0].machine == topology->hosts[2047].machine);
  cr_assert(topology->hosts[0].name != topology->hosts[2047].name);
}

Test(synthetic, spaces_do_not_matter) {
  for (const char* text : {"2xdgx-h100", " 2x dgx-h100", "2x   dgx-h100 "})
    cr_assert(read_synthetic(text)->hosts.size() == 2, "%s", text);
}

Test(machine_toml, mistakes_are_found_with_their_line) {
  const std::string good = read_file(golden("small.toml"));
  cr_assert(read_machine_toml(good, "test").has_value());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto machine = read_machine_toml(text, "test");
    cr_assert_not(machine.has_value(), "%s", to.c_str());
    return machine.error().text;
  };
  cr_assert(with("numa = 0", "numa = 7").find("no NUMA node 7") != std::string::npos);
  cr_assert(with("sockets = 1", "sockets = 0").find("line 4: 'sockets'") == 0);
  cr_assert(with("sockets = 1", "sockets = 1000000").find("from 1 to 64") != std::string::npos);
  cr_assert(with("pcie_lanes = 8", "pcie_lanes = -8").find("'pcie_lanes'") != std::string::npos);
  cr_assert(with("pcie_gt_s = 16.0", "pcie_gt_s = 17.0").find("one of 2.5, 5, 8") !=
            std::string::npos);
  cr_assert(with("pcie_lanes = 8", "pcie_lanes = 7").find("one of 1, 2, 4") != std::string::npos);
  for (const char* number : {"nan", "inf", "-inf", "-1.0", "0.0", "1e300"}) {
    cr_assert(with("pcie_gt_s = 16.0", fmt::format("pcie_gt_s = {}", number)).find("'pcie_gt_s'") !=
              std::string::npos);
    cr_assert(with("= 100.0", fmt::format("= {}", number)).find("'gigabits_per_second'") !=
              std::string::npos);
  }
  cr_assert(with("family = 0", "family = 4294967302").find("'family'") != std::string::npos);
  cr_assert(with("model_number = 0", "model_number = -1").find("'model_number'") !=
            std::string::npos);
  for (const char* links : {"[-1]", "[0]", "[4294967314]", "[2.5]", "[\"a\"]", "7"})
    cr_assert(with("[pcie]", fmt::format("[nvlink]\nlinks_to_switch = {}\n[pcie]", links))
                      .find("'links_to_switch'") != std::string::npos,
              "%s", links);
  cr_assert(with("gpus = [0]", "gpus = [0, 0]").find("gpu0 is listed twice") != std::string::npos);
  cr_assert(with("gpus = [0]", "gpus = [-1]").find("from 0 to 255") != std::string::npos);
  cr_assert(with("nics = [", "nics = [{ name = \"mlx5_0\" }, ").find("mlx5_0 is listed twice") !=
            std::string::npos);
  cr_assert(with("0000:01:00.0", "over there").find("PCI address") != std::string::npos);
  cr_assert(with("gpus = [0]", "gpus = [\"a\"]").find("numbers") != std::string::npos);
  cr_assert(with("[gpu]", "[gpu2]").find("gpu2") != std::string::npos);
}

Test(json, holds_every_device_once_and_every_host) {
  const auto json = nlohmann::json::parse(json_text(*read_synthetic("3x dgx-h100")));
  cr_assert(json["version"] == 2);
  cr_assert(json["machines"].size() == 1 && json["hosts"].size() == 3);
  const Machine m = *read_synthetic("dgx-h100")->hosts[0].machine;
  cr_assert(json["devices"].size() == m.devices().size());
  cr_assert(json["links"].size() == m.links().size());
  for (size_t i = 0; i < json["devices"].size(); i++) cr_assert(json["devices"][i]["id"] == i);
}

Test(tree_and_json, what_a_file_says_reaches_no_terminal_raw) {
  const std::string evil = "\x1b]0;owned\x07\xff\xc2\x9b\n";
  const auto topology = single_host(read("<system version=\"1\" name=\"" + evil +
                                         "\"><cpu numaid=\"0\"><nic><net name=\"" + evil +
                                         "\" speed=\"1000\"/></nic><"
                                         "what" +
                                         " a=\"1\"/></cpu></system>"));
  const std::string tree = tree_text(topology), json = json_text(topology);
  for (const std::string& text : {tree, json})
    for (const char c : text) cr_assert(c == '\n' || (c >= ' ' && c <= '~'), "%s", text.c_str());
  cr_assert(tree.find("\\x1b]0;owned\\x07\\xff") != std::string::npos, "%s", tree.c_str());
  cr_assert(nlohmann::json::parse(json)["hosts"][0]["name"].get<std::string>().find("\\xff") !=
            std::string::npos);
}

Test(json, keeps_hosts_of_two_kinds_apart) {
  Topology both = *read_synthetic("2x dgx-h100");
  const Topology a100 = *read_synthetic("dgx-a100");
  both.hosts.insert(both.hosts.begin() + 1, a100.hosts[0]);
  const auto json = nlohmann::json::parse(json_text(both));
  cr_assert(json["machines"].size() == 2 && json["hosts"].size() == 3);
  for (const size_t i : {0, 1, 2}) cr_assert(json["hosts"][i]["machine"] == (i == 1 ? 1 : 0));
  const auto& last = json["links"].back();
  cr_assert(json["devices"][last["b"].get<size_t>()]["machine"] == 1);
}

Test(tree, marks_a_bundle_of_which_any_link_is_assumed_and_explains_marks_only) {
  const auto text = [](Provenance second) {
    Builder builder("host~", "test");
    Device numa{.kind = DeviceKind::numa, .identity = {.number = 0}};
    const uint32_t parent = builder.see(numa);
    Device gpu{.kind = DeviceKind::gpu, .parent = parent};
    gpu.pcie_speed = known(32.0, Provenance::file);
    gpu.pcie_lanes = known(16, Provenance::file);
    gpu.identity.bdf = Bdf{0, 1, 0, 0};
    const uint32_t from = builder.see(gpu);
    for (const Provenance provenance : {Provenance::file, second})
      builder.link(from, builder.see({.kind = DeviceKind::nvswitch}),
                   {LinkType::nvlink, 2, known(gigabytes(40), provenance)});
    return tree_text(single_host(*std::move(builder).build()));
  };
  const std::string told = text(Provenance::file), mixed = text(Provenance::assumed);
  cr_expect(told.find("nvlink 4x 80 GB/s") != std::string::npos, "%s", told.c_str());
  cr_expect(told.find("~ assumed") == std::string::npos, "%s", told.c_str());
  cr_expect(mixed.find("nvlink 4x ~80 GB/s") != std::string::npos, "%s", mixed.c_str());
  cr_expect(mixed.find("~ assumed") != std::string::npos, "%s", mixed.c_str());
}

Test(tree, names_the_first_of_many_hosts_whose_names_do_not_fold) {
  Topology topology = *read_synthetic("300x dgx-h100");
  topology.leaves = {{"leaf0", 0}};
  for (uint32_t i = 0; i < 300; i++) {
    Host& host = topology.hosts[i];
    host.name = std::string{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
    host.domain = "rack";
    host.leaves = {0};
  }
  const std::string text = tree_text(topology);
  cr_assert(text.find("NVLink domain rack: aa, ab, ac, ad and 296 more\n"
                      "leaf switch leaf0: aa, ab, ac, ad and 296 more\n") != std::string::npos,
            "%s", text.c_str());
}

Test(tree, tells_hosts_of_domains_and_leaves_in_natural_order) {
  Topology topology = *read_synthetic("4x dgx-h100");
  topology.leaves = {{"leaf2", 0}, {"leaf10", 1}, {"spare", {}}, {"leaf11", 0}};
  for (uint32_t i = 0; i < 4; i++) {
    Host& host = topology.hosts[i];
    host.name = fmt::format("node{}", i + 8);
    host.domain = i < 2 ? "rack10" : "rack2";
    host.leaves.assign(8, kNoLeaf);
    host.leaves[0] = i < 3 ? 0 : 3;
    if (i < 3) host.leaves[1] = 1;
  }
  const std::string text = tree_text(topology);
  cr_assert(text.find("NVLink domain rack2: node[10-11]\n"
                      "NVLink domain rack10: node[8-9]\n"
                      "leaf switches leaf[2,10]: node[8-10]\n"
                      "leaf switch spare: no hosts\n"
                      "leaf switch leaf11: node11\n") != std::string::npos,
            "%s", text.c_str());
}
