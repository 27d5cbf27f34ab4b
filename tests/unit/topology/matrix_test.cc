// SPDX-License-Identifier: Apache-2.0
#include "machines.h"
#include "plan.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// The words of a row, the first of which is its title.
std::vector<std::string> row(const std::string& matrix, const std::string& title) {
  std::istringstream lines(matrix);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> out(std::istream_iterator<std::string>(words), {});
    if (line.starts_with(title + " ")) return out;
  }
  cr_assert(false, "no row %s in\n%s", title.c_str(), matrix.c_str());
  return {};
}

std::string matrix(const Plan& plan) { return matrix_text(single_host(plan.build())); }

}  // namespace

Test(matrix, words_are_those_of_nvidia_smi) {
  Plan plan{.numas = 2, .switches = {{0, 2, {400}}, {0, 1, {400}}, {1, 1, {400}}}, .nvlinks = 18};
  plan.edit = change("numa1", [](Device& d) { d.attributes["cpu.affinity"] = "f00f0,0000ff00"; });
  const std::string text = matrix(plan);
  cr_assert(row(text, "GPU0") == std::vector<std::string>({"GPU0", "X", "NV18", "NV18", "NV18",
                                                           "PIX", "PHB", "SYS", "N/A", "0"}),
            "%s", text.c_str());
  const auto last = row(text, "GPU3");
  cr_assert(last[8] == "8-15,36-39,48-51" && last[9] == "1", "%s", text.c_str());
  cr_assert(row(text, "NIC2") ==
            std::vector<std::string>({"NIC2", "SYS", "SYS", "SYS", "PIX", "SYS", "SYS", "X"}));
  for (const char* legend : {"NV#", "PIX", "PHB", "SYS", "NIC0: mlx5_0"})
    cr_expect(text.find(legend) != std::string::npos);
  for (const char* unused : {"NODE", "PXB", "C2C", "XGMI"})
    cr_expect(text.find(unused) == std::string::npos, "%s", unused);
}

// Polaris counts them against its NUMA nodes.
Test(matrix, gpus_stand_in_the_order_of_their_numbers) {
  const std::string text = matrix_text(*read_synthetic("a100x4-slingshot"));
  for (int i = 0; i < 4; i++)
    cr_assert(row(text, fmt::format("GPU{}", i)).back() == fmt::format("{}", 3 - i), "%s",
              text.c_str());
  cr_assert(row(text, "GPU3")[5] == "PHB" && row(text, "GPU3")[6] == "SYS");
}

Test(matrix, another_pci_domain_is_another_host_bridge) {
  Plan plan{.switches = {{0, 1, {400}, true}}};
  plan.edit = change("nic0", [](Device& d) { d.identity.bdf->domain = 1; });
  cr_assert(row(matrix(plan), "GPU0")[2] == "NODE");
}

Test(matrix, host_bridges_that_are_known_tell_phb_from_node) {
  Plan plan{.switches = {{0, 1, {400, 400}, true}}};
  cr_assert(matrix(plan).find("which ones is not known") != std::string::npos);
  plan.edit = [](Device& d) {
    if (d.label == "gpu0" || d.label == "nic0")
      d.host_bridge = known(std::string("0000:16"), Provenance::file);
    if (d.label == "nic1") d.host_bridge = known(std::string("0000:64"), Provenance::file);
  };
  const std::string text = matrix(plan);
  const auto gpu = row(text, "GPU0");
  cr_assert(gpu[2] == "PHB" && gpu[3] == "NODE", "%s", text.c_str());
  cr_assert(text.find("which ones is not known") == std::string::npos);
}

Test(matrix, a_nic_without_ports_is_there) {
  Plan plan{.switches = {{0, 1, {400}}}};
  plan.finish = [](Builder& builder) {
    builder.see(on_pci(DeviceKind::nic, "bare", 0x40, builder.numa(0)));
  };
  const std::string text = matrix(plan);
  cr_assert(row(text, "NIC1") == std::vector<std::string>({"NIC1", "PHB", "PHB", "X"}), "%s",
            text.c_str());
  cr_assert(text.find("NIC1: bare 0000:40:00.0") != std::string::npos);
}

Test(matrix, what_goes_over_c2c_says_so) {
  Plan plan{.switches = {{0, 1, {400}, true}}};
  plan.finish = [](Builder& builder) {
    Device node{.kind = DeviceKind::numa};
    node.identity.number = 0;
    builder.link(builder.see(on_pci(DeviceKind::gpu, "", 1, kNoDevice)), builder.see(node),
                 {LinkType::c2c, 10, known(gigabytes(440), Provenance::file)});
  };
  cr_assert(row(matrix(plan), "GPU0")[2] == "C2C", "%s", matrix(plan).c_str());
}

Test(matrix, a_numa_node_that_nobody_told_is_not_shown) {
  Plan plan{.numas = 2, .switches = {{1, 1, {400}}}};
  plan.edit = change("switch0", [](Device& d) { d.parent = kNoDevice; });
  cr_assert(row(matrix(plan), "GPU0").back() == "N/A");
}

Test(matrix, large_machines_stay_aligned) {
  Plan plan{.numas = 2,
            .switches = {{0, 36, std::vector<double>(16, 400.0)},
                         {1, 36, std::vector<double>(16, 400.0)}}};
  std::istringstream lines(matrix(plan));
  std::string header, line;
  std::getline(lines, header);
  const size_t last = header.find("NIC31");
  for (int i = 0; i < 104; i++) {
    std::getline(lines, line);
    cr_assert(line.size() > last && line[last] != ' ' && line[last - 1] == ' ', "%s", line.c_str());
  }
}

Test(matrix, hosts_of_one_kind_are_shown_once) {
  const std::string text = matrix_text(*read_synthetic("3x dgx-h100"));
  cr_assert(text.starts_with("3x dgx-h100:\n"));
  cr_assert(text.find("NIC Legend") == text.rfind("NIC Legend"));
}
