// SPDX-License-Identifier: Apache-2.0
// Topologies as hwloc writes them, from files and in place of this host's: the traps in them.
#include <criterion/criterion.h>

#include <cmath>
#include <cstring>

#include "../../fake/nvml.h"
#include "../../fake/verbs.h"
#include "../knobs.h"
#include "machines.h"
#include "topology/builder.h"
#include "topology/format/formats.h"
#include "topology/path.h"
#include "topology/probe/live.h"

using namespace crosstie;
using namespace crosstie::test;
namespace fs = std::filesystem;

namespace {

Machine read(const std::string& xml) {
  auto machine = read_hwloc_xml(xml, "test");
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

std::string object(const std::string& attributes, const std::string& inside = "") {
  return fmt::format("<object {}>{}</object>", attributes, inside);
}
std::string pci(const std::string& bdf, const std::string& type, const std::string& inside = "",
                const char* speed = "31.507692") {
  return object(
      fmt::format("type=\"PCIDev\" pci_busid=\"{}\" pci_type=\"{}\" pci_link_speed=\"{}\"", bdf,
                  type, speed),
      inside);
}
std::string os_device(const std::string& name, int kind) {
  return fmt::format("<object type=\"OSDev\" name=\"{}\" osdev_type=\"{}\"/>", name, kind);
}
std::string gpu(const std::string& bdf) { return pci(bdf, "0302 [10de:2330] [10de:16c1] a1"); }
std::string nic(const std::string& bdf, const std::string& name, const char* model = "1021") {
  return pci(bdf, fmt::format("0207 [15b3:{}] [15b3:0041] 00", model), os_device(name, 3));
}
std::string bridge(const std::string& bdf, const std::string& inside,
                   const char* speed = "31.507692") {
  return object(fmt::format("type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"{}\" pci_type=\"0604 "
                            "[1000:c030] [1000:0000] b0\" pci_link_speed=\"{}\"",
                            bdf, speed),
                inside);
}
std::string root(const std::string& inside) {
  return object("type=\"Bridge\" bridge_type=\"0-1\"", inside);
}
std::string sets(const char* cpus, const char* nodes) {
  return fmt::format("cpuset=\"{}\" nodeset=\"{}\"", cpus, nodes);
}
// A package with a NUMA node of its own.
std::string package(int number, const char* cpus, const char* nodes, const std::string& inside) {
  const auto about = fmt::format("os_index=\"{}\" {}", number, sets(cpus, nodes));
  return object("type=\"Package\" " + about, "<info name=\"CPUVendor\" value=\"AuthenticAMD\"/>" +
                                                 object("type=\"NUMANode\" " + about) + inside);
}
std::string host(const std::string& inside) {
  return "<topology version=\"2.0\">" +
         object("type=\"Machine\" os_index=\"0\" " + sets("0xf", "0x3"), inside) + "</topology>";
}
std::string one_package(const std::string& inside) {
  return host(package(0, "0xf", "0x1", inside));
}

std::string root_at(const char* buses, const std::string& inside) {
  return object(fmt::format("type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"{}\"", buses),
                inside);
}

uint32_t index_of(const Machine& m, std::string_view label) {
  const Device* const device = find(m, label);
  cr_assert(device != nullptr, "no %s", std::string(label).c_str());
  return static_cast<uint32_t>(device - m.devices().data());
}

Path path(const Machine& m, Paths::View view, const char* from, const char* to) {
  return Paths(m, view).between(index_of(m, from), index_of(m, to));
}

// Each device to each GPU, port and NUMA node.
void expect_connected(const Machine& m) {
  cr_assert(validate(m).has_value());
  for (const auto view : {Paths::View::physical, Paths::View::nccl}) {
    const Paths paths(m, view);
    for (uint32_t a = 0; a < m.devices().size(); a++)
      for (uint32_t b = 0; b < m.devices().size(); b++) {
        const DeviceKind from = m.devices()[a].kind, to = m.devices()[b].kind;
        const auto ends = [](DeviceKind k) {
          return k == DeviceKind::gpu || k == DeviceKind::port || k == DeviceKind::numa;
        };
        if (ends(from) && ends(to))
          cr_assert(paths.between(a, b).type != PathClass::dis, "%s to %s",
                    m.devices()[a].label.c_str(), m.devices()[b].label.c_str());
      }
  }
}

// A host that tests ask of, with a sysfs of their own.
struct FakeHost {
  FakeHost() {
    std::string folder = (fs::temp_directory_path() / "crosstie-sysfs-XXXXXX").string();
    cr_assert(mkdtemp(folder.data()) != nullptr);
    drivers.sysfs = folder;
    drivers.verbs = Driver<Verbs>{fake::verbs(), "fake", {}};
    drivers.nvml = fail(Code::missing, "no NVML");
  }
  ~FakeHost() { fs::remove_all(drivers.sysfs); }
  // Only the first of the two RDMA devices.
  void first_rdma_device_only() {
    drivers.verbs->functions.get_device_list = [](int* count) {
      return *count = 1, fake::rdma_list;
    };
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((drivers.sysfs / file).parent_path());
    std::ofstream(drivers.sysfs / file) << text << "\n";
  }
  Machine look(const std::string& xml) const {
    auto machine = probe_live({drivers, "here", xml});
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
    return std::move(*machine);
  }
  Drivers drivers;
};

}  // namespace

Test(hwloc, devices_right_beneath_the_cpu_tell_their_host_bridge) {
  const Machine machine = read(one_package(
      root_at("0000:[16-30]", bridge("0000:16:01.0", gpu("0000:17:00.0"))) +
      root_at(
          "0000:[64-70]",
          bridge("0000:64:01.0",
                 bridge("0000:65:00.0", bridge("0000:66:00.0", nic("0000:67:00.0", "mlx5_0"))))) +
      root(nic("0000:80:00.0", "mlx5_1"))));
  cr_assert(find(machine, "gpu0")->host_bridge->value == "0000:16");
  cr_assert(find(machine, "switch0")->host_bridge->value == "0000:64");
  cr_assert(!find(machine, "nic0")->host_bridge, "it is beneath the switch");
  cr_assert(!find(machine, "nic1")->host_bridge, "of which nothing is told");
}

// As NCCL would find it at /sys/devices/system/node/node0/cpumap.
Test(hwloc, numa_nodes_tell_their_cpus) {
  const Machine machine = read(
      host(package(0, "0xff000000,,0x0000ffff", "0x1", "") + package(1, "0xffff0000", "0x2", "")));
  cr_assert(find(machine, "numa0")->attributes.at("cpu.affinity") == "ff000000,00000000,0000ffff");
  cr_assert(find(machine, "numa1")->attributes.at("cpu.affinity") == "ffff0000");
  const auto written = nccl_xml_text(single_host(machine));
  cr_assert(written && written->find("numaid=\"1\" affinity=\"ffff0000\"") != std::string::npos);
  const std::string many = "0x1" + std::string(40, ',') + "0x1";
  const Machine large = read(host(package(0, many.c_str(), "0x1", "")));
  cr_assert(!find(large, "numa0")->attributes.contains("cpu.affinity"), "NCCL could not read it");
}

Test(hwloc, an_infiniband_port_that_no_subnet_manager_set_up) {
  std::string text = read_file(golden("hwloc.xml"));
  for (const auto& [from, to] : {std::pair("Port1State\" value=\"4", "Port1State\" value=\"2"),
                                 {"Port1LID\" value=\"0x12", "Port1LID\" value=\"0x0"}}) {
    cr_assert(text.find(from) != std::string::npos);
    text.replace(text.find(from), std::strlen(from), to);
  }
  const Machine m = read(text);
  cr_assert(find(m, "mlx5_0")->carrier->value && find(m, "mlx5_0")->lid->value == 0);
}

Test(hwloc, all_versions_give_one_answer) {
  const auto json = [](const char* file) {
    return json_text(single_host(read(read_file(golden(file)))));
  };
  cr_assert(json("hwloc.xml") == json("hwloc-1.xml"));
  cr_assert(json("hwloc.xml") == json("hwloc-3.xml"));
}

Test(hwloc, ports_have_the_identity_that_hwloc_tells) {
  const Machine m = read(read_file(golden("hwloc.xml")));
  const Device& port = *find(m, "mlx5_1");
  cr_assert(*port.identity.guid == 0xa088c20300000011);
  cr_assert(port.identity.number == 1u);
  cr_assert(port.carrier->value);
  cr_assert(port.lid->value == 0x13);
  cr_assert(port.subnet_prefix->value == 0xfe80000000000000);
  cr_assert(port.link_layer->value == "InfiniBand");
  cr_assert(port.gids->value.size() == 1);
  cr_assert((port.gids->value[0] == Gid{0, "fe80::a088:c203:0:11", "IB"}));
  cr_assert(m.devices()[port.parent].node_guid->value == 0xa088c20300000011);
  cr_assert(m.devices()[port.parent].sys_image_guid->value == 0xa088c20300000010);
  cr_assert(*m.devices()[port.parent].identity.bdf == *parse_bdf("0000:04:00.1"));
}

Test(hwloc, a_gpu_has_the_identity_that_its_driver_told) {
  const Machine m = read(read_file(golden("hwloc.xml")));
  const Device& gpu = *find(m, "gpu0");
  cr_assert(gpu.identity.uuid == "GPU-11111111-2222-3333-4444-555555555555");
  cr_assert(gpu.model->value == "NVIDIA A100-SXM4-40GB");
  cr_assert(gpu.index->value == 0);
  cr_assert(gpu.model->from == Provenance::file);
}

Test(hwloc, accelerators_of_intel_and_fpgas_and_graphics_within_the_cpu_are_no_gpus) {
  const Machine m = read(one_package(root(pci("0000:00:02.0", "0300 [8086:a780] [0000:0000] 04") +
                                          pci("0000:00:0b.0", "1200 [8086:7d1d] [0000:0000] 04") +
                                          pci("0000:01:00.0", "1200 [10ee:5000] [10ee:000e] 00") +
                                          pci("0000:02:00.0", "1200 [1002:74a1] [1002:74a1] 00") +
                                          pci("0000:03:00.0", "0300 [8086:56c0] [8086:4905] 08"))));
  cr_assert(m.count(DeviceKind::gpu) == 2);
  cr_assert(to_text(*find(m, "gpu0")->identity.bdf) == "0000:02:00.0");
}

Test(hwloc, a_file_cut_anywhere_is_an_error) {
  for (const char* file : {"hwloc.xml", "hwloc-1.xml", "hwloc-nvlink.xml"}) {
    const std::string whole = read_file(golden(file));
    for (size_t size = 0; size < whole.rfind("</topology>"); size += 7) {
      const auto part = read_hwloc_xml(whole.substr(0, size), "test");
      cr_assert(!part.has_value() && !part.error().text.empty(), "%s of %zu bytes", file, size);
    }
  }
}

Test(hwloc, what_is_no_topology_is_an_error) {
  const auto error = [](const std::string& text) {
    const auto read = read_hwloc_xml(text, "test");
    return read ? std::string() : read.error().text;
  };
  const auto says = [&](const std::string& text, const char* what) {
    cr_assert(error(text).find(what) != std::string::npos, "%s", error(text).c_str());
  };
  says("<topology version=\"0.9\"><object/></topology>", "version \"0.9\"");
  says("<topology version=\"x\"><object/></topology>", "version \"x\"");
  says("<topology version=\"2.0\"/>", "without an object");
  says("<root/>", "root element <root>");
  says("<topology>\n<object>", "line 2: Start-end tags mismatch; the file may be cut short");
  cr_assert(error("<topology>\n<object>\n</topology>\n") == "line 3: Start-end tags mismatch", "%s",
            error("<topology>\n<object>\n</topology>\n").c_str());
  says(host(pci("1:2:3:4", "0200 [15b3:1021] [15b3:0041]")), "pci_busid");
  says(host(pci("0000:01:00.0", "NIC")), "pci_type \"NIC\"");
  std::string deep;
  for (int i = 0; i < 200; i++) deep = object("type=\"Group\"", deep);
  says(host(deep), "deeper");
  std::string nodes;
  for (int i = 0; i < 257; i++) nodes += package(i, "0xf", "0x1", "");
  says(host(nodes), "more than 256 NUMA nodes");
}

Test(hwloc, what_cannot_be_read_of_a_package_or_a_node_is_a_gap) {
  const auto text = [](const char* index, const char* cpus) {
    return host(package(0, "0x3", "0x1", "") +
                object(fmt::format("type=\"Package\" os_index=\"{}\" {}", index, sets(cpus, "0x2")),
                       object(fmt::format("type=\"NUMANode\" os_index=\"{}\" {}", index,
                                          sets(cpus, "0x2")))));
  };
  const Machine right = read(text("1", "0xc"));
  cr_assert(right.count(DeviceKind::numa) == 2);
  for (const Gap& gap : right.gaps())
    cr_assert(gap.missing.find("cannot be read") == std::string::npos, "%s", gap.missing.c_str());
  for (const char* index : {"4294967296", "-1", "x"}) {
    const Machine m = read(text(index, "0xc"));
    cr_assert(m.count(DeviceKind::numa) == 1);
    cr_assert(has_gap(m, "NUMANode", fmt::format("its os_index \"{}\" cannot be read", index)));
    cr_assert(has_gap(m, "Package", "cannot be read"));
  }
  for (const char* cpus : {"hello", "0xzz", "0x1,0xg"}) {
    const Machine m = read(text("1", cpus));
    cr_assert(m.count(DeviceKind::numa) == 1);
    cr_assert(has_gap(m, "NUMANode 1", fmt::format("its cpuset \"{}\" cannot be read", cpus)));
    cr_assert(has_gap(m, "Package 1", "cannot be read"));
  }
}

Test(hwloc, two_roots_are_an_error) {
  std::string text = one_package("");
  text.insert(text.find("</topology>"), object("type=\"Machine\"", ""));
  const auto two = read_hwloc_xml(text, "test");
  cr_assert(!two && two.error().text.find("two roots") != std::string::npos);
}

Test(hwloc, link_speeds_are_split_into_rate_and_width) {
  struct Row {
    const char* gigabytes;
    double speed;
    int lanes;
  };
  for (const Row& row : {Row{"0.250000", 2.5, 1}, Row{"4.000000", 2.5, 16}, Row{"8.000000", 5, 16},
                         Row{"15.753846", 8, 16}, Row{"31.507692", 16, 16},
                         Row{"63.015385", 32, 16}, Row{"1.969231", 8, 2}}) {
    const Machine m = read(one_package(
        root(pci("0000:01:00.0", "0302 [10de:2330] [10de:16c1] a1", "", row.gigabytes))));
    const Device& gpu = *find(m, "gpu0");
    cr_assert(gpu.pcie_speed->value == row.speed && gpu.pcie_lanes->value == row.lanes, "%s",
              row.gigabytes);
    cr_assert(gpu.pcie_lanes_now == gpu.pcie_lanes);
    cr_assert(has_gap(m, "gpu0", "2.5 GT/s") == (row.speed == 2.5));
  }
}

Test(hwloc, what_is_no_pcie_rate_is_kept) {
  const Machine m =
      read(one_package(root(pci("0000:01:00.0", "0302 [10de:2330] [10de:16c1] a1", "", "0.3"))));
  const double rate = find_link(m, "numa0", "gpu0")->bandwidth->value.bytes_per_second;
  cr_assert(std::abs(rate - 0.3e9 * 0.75) < 1e6, "%g", rate);
}

// It is not at once as slow as it was when idle and as fast as what is beneath it.
Test(hwloc, of_a_slow_bridge_one_thing_is_assumed) {
  const char* const slow = "1.000000";  // 2.5 GT/s x4
  const Machine machine =
      read(one_package(root(bridge("0000:00:01.0",
                                   bridge("0000:01:00.0",
                                          bridge("0000:02:00.0", gpu("0000:03:00.0")) +
                                              bridge("0000:02:01.0", gpu("0000:04:00.0")),
                                          slow),
                                   slow))));
  std::map<std::string, int> assumed;
  for (const Gap& gap : machine.gaps())
    if (gap.about == GapAbout::pcie_link) assumed[gap.device]++;
  cr_assert(has_gap(machine, "switch0", "tells 2.5 GT/s x4"));
  for (const auto& [device, times] : assumed) cr_assert(times == 1, "%s", device.c_str());
}

Test(hwloc, an_unknown_link_speed_is_a_gap) {
  const Machine m =
      read(one_package(root(pci("0000:01:00.0", "0302 [10de:2330] [10de:16c1] a1", "", "0.0"))));
  cr_assert(has_gap(m, "gpu0", "PCIe speed and width"));
}

Test(hwloc, nvlinks_are_counted_from_bandwidths) {
  const Machine m = read(read_file(golden("hwloc-nvlink.xml")));
  cr_assert(find_link(m, "gpu0", "gpu1")->type == LinkType::nvlink);
  cr_assert(find_link(m, "gpu0", "gpu1")->count == 2);
  uint32_t to_cpu = 0;
  for (const Link& link : m.links())
    if (link.type == LinkType::nvlink && m.devices()[link.a].kind == DeviceKind::numa)
      to_cpu += link.count;
  cr_assert(to_cpu == 8);
  cr_assert(nvlinks(m) == 10);
  cr_assert(has_gap(m, "NVLinkBandwidth", "no GPU nor CPU"));
}

Test(hwloc, partitions_are_endpoints_that_share_the_links_of_their_gpu) {
  const Machine m = read(read_file(golden("hwloc-partitions.xml")));
  cr_assert(m.count(DeviceKind::gpu) == 6);
  cr_assert(find(m, "rsmi4")->parent == index_of(m, "gpu1"));
  cr_assert(find_link(m, "gpu0", "gpu1")->count == 2);  // not once for each pair of partitions
  for (const auto view : {Paths::View::physical, Paths::View::nccl}) {
    const Paths paths(m, view);
    const auto between = [&](const char* a, const char* b) {
      return paths.between(index_of(m, a), index_of(m, b));
    };
    cr_assert(between("rsmi0", "rsmi5") == between("gpu0", "gpu1"));
    cr_assert(between("rsmi0", "rsmi5").type == PathClass::nvl);
    cr_assert(between("rsmi0", "rsmi1").type == PathClass::loc);
    cr_assert(between("rsmi5", "numa1").type == PathClass::phb);
  }
  expect_connected(m);
}

Test(hwloc, virtual_functions_of_a_gpu_are_no_gpus_beside_it) {
  const auto both = gpu("0000:03:00.0") + gpu("0000:03:00.4") + gpu("0000:03:02.3");
  const Machine m = read(one_package(root(both)));
  cr_assert(m.count(DeviceKind::gpu) == 1);
  cr_assert(has_gap(m, "0000:03:02.3", "a virtual function of the GPU 0000:03:00.0"));
  // As a virtual machine sees them.
  const Machine guest = read(one_package(root(gpu("0000:03:00.4") + gpu("0000:03:00.5"))));
  cr_assert(guest.count(DeviceKind::gpu) == 2);
}

Test(hwloc, a_function_without_driver_beside_one_of_another_model_is_a_virtual_one) {
  const auto unused = [](const char* bdf, const char* model) {
    return pci(bdf, fmt::format("0200 [abcd:{}] [abcd:0001] 00", model));
  };
  const auto used = pci("0000:01:00.0", "0200 [abcd:0001] [abcd:0001] 00", os_device("eth0", 2));
  Machine m = read(one_package(root(used + unused("0000:01:00.1", "0002"))));
  cr_assert(m.count(DeviceKind::nic) == 1 && m.count(DeviceKind::port) == 1);
  cr_assert(find(m, "nic1")->physical_function->value == *parse_bdf("0000:01:00.0"));
  cr_assert(find(m, "nic1")->physical_function->from == Provenance::assumed);
  cr_assert(has_gap(m, "nic1", "unused"));
  // The second port of a card, with no driver.
  m = read(one_package(root(used + unused("0000:01:00.1", "0001"))));
  cr_assert(m.count(DeviceKind::nic) == 2);
}

Test(hwloc, a_virtual_function_whose_card_is_hidden_is_a_nic) {
  const auto xml = one_package(root(nic("0000:05:00.0", "mlx5_0", "101e")));
  const Machine m = read(xml);
  cr_assert(m.count(DeviceKind::nic) == 1 && m.count(DeviceKind::port) == 1);
  cr_assert_not(m.devices()[index_of(m, "nic0")].physical_function);
  cr_assert(has_gap(m, "nic0", "virtual functions"));
  expect_connected(m);
  FakeHost fake;
  fake.first_rdma_device_only();
  const auto folder = fake.drivers.sysfs / "bus/pci/devices/0000:05:00.0";
  fs::create_directories(folder);
  fs::create_symlink("../0000:04:00.0", folder / "physfn");
  const Machine live = fake.look(xml);
  cr_assert(live.count(DeviceKind::nic) == 1 && live.count(DeviceKind::port) == 1);
  cr_assert(find(live, "nic0")->physical_function->value == *parse_bdf("0000:04:00.0"));
}

Test(hwloc, both_functions_of_a_port_are_one_nic_of_this_host) {
  FakeHost both;
  const auto xml =
      one_package(root(nic("0000:17:00.0", "mlx5_0") + nic("0000:17:00.2", "mlx5_1", "101e")));
  // Nothing but sysfs counts here.
  cr_assert(both.look(xml).count(DeviceKind::port) == 2);
  const auto folder = both.drivers.sysfs / "bus/pci/devices/0000:17:00.2";
  fs::create_directories(folder);
  fs::create_symlink("../0000:17:00.0", folder / "physfn");
  const Machine m = both.look(xml);
  cr_assert(m.count(DeviceKind::nic) == 1);
  cr_assert(m.count(DeviceKind::port) == 1);
  cr_assert(find(m, "nic1")->physical_function->value == *parse_bdf("0000:17:00.0"));
  cr_assert(find(m, "nic1")->physical_function->from == Provenance::driver);
  cr_assert_not(has_gap(m, "nic1", "virtual"));
  expect_connected(m);
}

Test(hwloc, a_spurious_switch_does_not_move_what_is_beneath_it) {
  const auto with = [](const std::string& below) {
    return read(one_package(root(bridge(
        "0000:00:01.0", bridge("0000:01:00.0", bridge("0000:02:00.0", gpu("0000:03:00.0")) +
                                                   bridge("0000:02:01.0", below) +
                                                   bridge("0000:02:02.0", gpu("0000:05:00.0")))))));
  };
  const auto nic0 = nic("0000:09:00.0", "mlx5_0");
  const Machine plain = with(nic0);
  const Machine two = with(bridge("0000:07:00.0", bridge("0000:08:00.0", nic0)));
  const Machine one = with(bridge("0000:08:00.0", nic0));
  for (const Machine* m : {&plain, &two, &one}) {
    const Path path = ::path(*m, Paths::View::physical, "gpu0", "mlx5_0");
    cr_assert(path.type == PathClass::pix);
    cr_assert(path == ::path(plain, Paths::View::physical, "gpu0", "mlx5_0"));
    expect_connected(*m);
  }
  cr_assert(path(plain, Paths::View::nccl, "gpu0", "mlx5_0").type == PathClass::pix);
  cr_assert(path(two, Paths::View::nccl, "gpu0", "mlx5_0").type == PathClass::pxb);
  cr_assert(has_gap(one, "nic0", "odd bridge"));
}

Test(hwloc, a_switch_that_branches_counts_as_one) {
  const Machine m = read(one_package(root(bridge(
      "0000:00:01.0",
      bridge(
          "0000:01:00.0",
          bridge("0000:02:00.0", gpu("0000:03:00.0")) +
              bridge("0000:02:01.0",
                     bridge("0000:07:00.0", bridge("0000:08:00.0", nic("0000:09:00.0", "mlx5_0")) +
                                                bridge("0000:08:01.0", gpu("0000:0a:00.0")))))))));
  cr_assert(path(m, Paths::View::physical, "gpu0", "mlx5_0").type == PathClass::pxb);
}

Test(hwloc, a_narrow_spurious_switch_still_limits) {
  auto text = one_package(root(
      bridge("0000:00:01.0",
             bridge("0000:01:00.0",
                    bridge("0000:02:00.0", gpu("0000:03:00.0")) +
                        bridge("0000:02:01.0",
                               bridge("0000:07:00.0",
                                      bridge("0000:08:00.0", nic("0000:09:00.0", "mlx5_0"))))))));
  const size_t upstream = text.find("31.507692", text.find("0000:07:00.0"));
  text.replace(upstream, 9, "15.753846");
  const Machine m = read(text);
  const Paths paths(m, Paths::View::physical);
  const Path to_cpu = paths.between(index_of(m, "nic0"), index_of(m, "numa0"));
  cr_assert(to_cpu.bandwidth == gigabytes(12), "%g", to_cpu.bandwidth.bytes_per_second);
}

Test(hwloc, a_machine_is_connected_whatever_devices_the_firmware_does_not_place) {
  constexpr int kDevices = 6;
  for (unsigned lost = 0; lost < 1u << kDevices; lost++) {
    std::array<std::string, 3> where;  // under the packages, under the machine
    for (int i = 0; i < kDevices; i++) {
      const auto bdf = fmt::format("0000:{:02x}:00.0", 0x10 + i);
      const auto device = i % 2 == 0 ? gpu(bdf) : nic(bdf, fmt::format("mlx5_{}", i));
      where[(lost >> i & 1) != 0 ? 2 : i % 4 / 2] += root(device);
    }
    const Machine m = read(
        host(package(0, "0x3", "0x1", where[0]) + package(1, "0xc", "0x2", where[1]) + where[2]));
    cr_assert(m.count(DeviceKind::gpu) == 3 && m.count(DeviceKind::port) == 3);
    expect_connected(m);
    for (const Device& d : m.devices()) {
      if (d.kind != DeviceKind::gpu && d.kind != DeviceKind::nic) continue;
      const bool is_lost = (lost >> (d.identity.bdf->bus - 0x10) & 1) != 0;
      cr_assert(has_gap(m, d.label, "NUMA node") == is_lost, "%s of %x", d.label.c_str(), lost);
    }
  }
}

Test(hwloc, a_built_machine_is_connected_whatever_is_not_placed) {
  Random random = seeded_random();
  for (int run = 0; run < 200; run++) {
    Builder builder("random", "test");
    std::vector<uint32_t> places;  // NUMA nodes, then switches too
    const auto nodes = 1 + random() % 4;
    for (uint32_t i = 0; i < nodes; i++)
      places.push_back(builder.see({.kind = DeviceKind::numa, .identity = {.number = i}}));
    size_t lost = 0;
    for (uint8_t i = 0; i < 12; i++) {
      constexpr std::array kKinds = {DeviceKind::pci_switch, DeviceKind::gpu, DeviceKind::nic};
      Device d{.kind = kKinds[random() % kKinds.size()]};
      d.identity.bdf = Bdf{0, static_cast<uint8_t>(0x10 + i), 0, 0};
      if (random() % 2 == 0)
        d.parent = places[random() % places.size()];
      else
        lost++;
      const uint32_t index = builder.see(d);
      if (d.kind == DeviceKind::pci_switch) places.push_back(index);
      if (d.kind == DeviceKind::nic)
        builder.see({.kind = DeviceKind::port, .parent = index, .identity = {.name = "eth"}});
    }
    const auto machine = std::move(builder).build();
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
    expect_connected(*machine);
    size_t gaps = 0;
    for (const Gap& gap : machine->gaps())
      gaps += gap.missing.find("NUMA node") != std::string::npos;
    cr_assert(gaps == (nodes > 1 ? lost : 0));
  }
}

Test(hwloc, memory_without_cpus_is_no_place_for_devices) {
  const auto memory = object("type=\"NUMANode\" os_index=\"1\" " + sets("0x0", "0x2"));
  // A Grace Hopper: its GPU's memory is a node of its own, near the same CPU.
  const auto near = object("type=\"Package\" os_index=\"0\" " + sets("0xf", "0x3"),
                           object("type=\"NUMANode\" os_index=\"0\" " + sets("0xf", "0x1")) +
                               memory + root(gpu("0009:01:00.0")));
  const Machine m = read(host(near));
  cr_assert(m.count(DeviceKind::numa) == 1);
  cr_assert(find(m, "gpu0")->parent == index_of(m, "numa0"));
  cr_assert_not(has_gap(m, "gpu0", "NUMA node"));
}

Test(hwloc, a_view_limited_to_one_node_still_holds_the_devices_of_others) {
  const auto elsewhere = object("type=\"Group\" " + sets("0x0", "0x2"), root(gpu("0000:01:00.0")));
  const Machine m = read(host(package(0, "0x3", "0x1", "") + elsewhere));
  cr_assert(m.count(DeviceKind::gpu) == 1);
  expect_connected(m);
}

Test(hwloc, nodes_across_packages_are_in_none_and_a_gap) {
  const auto node = object("type=\"NUMANode\" os_index=\"0\" " + sets("0x5", "0x1"));
  const auto half = [](int n, const char* cpus) {
    return object(fmt::format("type=\"Package\" os_index=\"{}\" {}", n, sets(cpus, "0x1")));
  };
  const Machine m = read(host(node + half(0, "0x3") + half(1, "0xc")));
  cr_assert(find(m, "numa0")->parent == kNoDevice);
  cr_assert(has_gap(m, "numa0", "one package"));
}
