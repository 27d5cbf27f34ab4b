// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/search.h"

#include <criterion/criterion.h>

#include <chrono>

#include "layouts.h"
#include "topology/domain.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// A host with as many NVLinks from each GPU to an NVSwitch, and PCIe switches that are all alike,
// half of them on each of two NUMA nodes.
struct Plan {
  int capability = 90, nvlinks = 18;
  const char* vendor = "GenuineIntel";
  int switches = 8, gpus = 1, nics = 1;  // of a switch
  int nic_megabits = 400000;
  const char* pcie = "32.0 GT/s PCIe";
  const std::vector<std::vector<std::pair<int, int>>>* mesh = nullptr;  // NVLinks between GPUs
};
constexpr Plan kH, kA{80, 12, "AuthenticAMD", 4, 2, 2, 200000, "16.0 GT/s PCIe"},
    kAPrime{80, 12, "AuthenticAMD", 8, 1, 1, 200000, "16.0 GT/s PCIe"};

std::string pci(int bus, int device, const char* pci_class, const Plan& plan,
                const std::string& content) {
  return fmt::format(
      R"(<pci busid="0000:{:02x}:{:02x}.0" class="{}" link_speed="{}" link_width="16">{}</pci>)",
      bus, device, pci_class, plan.pcie, content);
}

std::string nvlinks(int gpu, const Plan& plan) {
  const auto one = [](const std::string& target, int count, const char* target_class) {
    return fmt::format(R"(<nvlink target="{}" count="{}" tclass="{}"/>)", target, count,
                       target_class);
  };
  if (plan.mesh == nullptr)
    return plan.nvlinks == 0 ? "" : one("0000:fe:00.0", plan.nvlinks, "0x068000");
  std::string all;
  for (const auto& [peer, count] : (*plan.mesh)[static_cast<size_t>(gpu)])
    all += one(fmt::format("0000:{:02x}:{:02x}.0", peer / plan.gpus * 8 + 9, peer % plan.gpus),
               count, "0x030200");
  return all;
}

std::string behind_switch(int index, const Plan& plan) {
  std::string all;
  for (int i = 0; i < plan.gpus; i++) {
    const int gpu = index * plan.gpus + i;
    all += pci(index * 8 + 9, i, "0x030200", plan,
               fmt::format(R"(<gpu dev="{}" sm="{}" gdr="1">{}</gpu>)", gpu, plan.capability,
                           nvlinks(gpu, plan)));
  }
  for (int i = 0; i < plan.nics; i++) {
    const int nic = index * plan.nics + i;
    all += pci(index * 8 + 10, i, "0x020700", plan,
               fmt::format(R"(<nic><net name="mlx5_{0}" dev="{0}" speed="{1}" port="1")"
                           R"( guid="0x{2:x}" gdr="1"/></nic>)",
                           nic, plan.nic_megabits, nic + 1));
  }
  return pci(index * 8 + 8, 0, "0x060400", plan, all);
}

Machine machine(const Plan& plan) {
  std::string xml = R"(<system version="1">)";
  for (int socket = 0; socket < 2; socket++) {
    xml += fmt::format(R"(<cpu numaid="{}" affinity="ff" arch="x86_64" vendor="{}" familyid="6")"
                       R"( modelid="143">)",
                       socket, plan.vendor);
    const int half = plan.switches / 2;
    for (int i = 0; i < half; i++) xml += behind_switch(socket * half + i, plan);
    xml += "</cpu>";
  }
  const auto topology = read_nccl_xml(xml + "</system>", "plan");
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  return *topology->hosts[0].machine;
}

NcclJob find(const Machine& machine, uint32_t nodes, uint32_t gpus = 0,
             NcclVersion version = {2, 28, 9}) {
  const NcclNodes alike{&machine, nodes, gpus};
  const auto job = find_nccl_job(find_nccl_release(version)->release, std::span(&alike, 1));
  cr_assert(job.has_value(), "%s", job ? "" : job.error().text.c_str());
  return *job;
}

std::string text(const NcclGraph& graph) {
  return fmt::format(
      "pattern {}, {} x {}/{}, {}/{}, same {}, cross {}", static_cast<int>(graph.pattern),
      graph.channels, graph.intra.bytes_per_second / 1e9, graph.inter.bytes_per_second / 1e9,
      name(graph.type_intra), name(graph.type_inter), graph.same_channels ? 1 : 0, graph.cross_nic);
}

void expect(const NcclGraph& found, const std::string& golden) {
  cr_expect(text(found) == golden, "%s, not %s", text(found).c_str(), golden.c_str());
}

}  // namespace

// Golden graphs are what NCCL 2.28.9 found on such machines.
Test(nccl_search, finds_nccls_graphs_of_one_hopper_node) {
  const NcclJob job = find(machine(kH), 1);
  expect(job.graphs.ring, "pattern 4, 12 x 30/30, NVL/PIX, same 1, cross 0");
  expect(job.graphs.tree, "pattern 1, 12 x 30/30, NVL/PIX, same 1, cross 0");
  expect(job.graphs.nvls, "pattern 5, 8 x 40/60, NVL/PIX, same 0, cross 0");
  cr_expect_eq(job.channels, 24);
  cr_expect(job.nvls && job.nvswitch && job.cpu == NcclCpu::intel);
}

Test(nccl_search, finds_nccls_graphs_of_four_hopper_nodes) {
  const NcclJob job = find(machine(kH), 4);
  expect(job.graphs.ring, "pattern 4, 8 x 48/48, NVL/PIX, same 0, cross 2");
  expect(job.graphs.tree, "pattern 3, 8 x 48/48, NVL/PIX, same 0, cross 0");
  expect(job.graphs.nvls, "pattern 5, 8 x 40/48, NVL/PIX, same 0, cross 0");
  cr_expect_eq(job.channels, 16);
  cr_expect_eq(job.ranks, 32);
}

Test(nccl_search, finds_nccls_graphs_of_ampere_nodes) {
  const NcclJob one = find(machine(kA), 1), two = find(machine(kA), 2);
  expect(one.graphs.ring, "pattern 4, 12 x 20/20, NVL/PIX, same 1, cross 0");
  expect(one.graphs.tree, "pattern 1, 12 x 20/20, NVL/PIX, same 1, cross 0");
  cr_expect_eq(one.channels, 24);
  expect(two.graphs.ring, "pattern 4, 8 x 24/24, NVL/PIX, same 0, cross 0");
  expect(two.graphs.tree, "pattern 1, 8 x 30/24, NVL/PIX, same 0, cross 0");
  cr_expect_eq(two.channels, 16);
  cr_expect(!two.nvls && two.cpu == NcclCpu::amd);
}

Test(nccl_search, makes_up_a_tree_where_nccl_finds_none) {
  const NcclJob job = find(machine(kAPrime), 2);
  expect(job.graphs.ring, "pattern 4, 1 x 24/24, NVL/PXN, same 0, cross 0");
  expect(job.graphs.tree, "pattern 1, 1 x 0.1/0.1, SYS/SYS, same 1, cross 0");
  cr_expect_eq(job.channels, 2);
}

Test(nccl_search, finds_a_tree_by_way_of_farther_nics_from_2_29_2_on) {
  const NcclJob job = find(machine(kAPrime), 2, 0, {2, 29, 2});
  cr_expect(job.channels > 2 && job.graphs.tree.intra > gigabytes(1));
}

Test(nccl_search, has_nvls_between_two_gpus_from_2_28_7_on) {
  const Machine h = machine(kH);
  cr_expect(find(h, 2, 2).nvls && !find(h, 2, 2, {2, 28, 3}).nvls);
  cr_expect(find(h, 2, 3, {2, 28, 3}).nvls);
}

Test(nccl_search, has_as_many_rings_as_nvls_channels_in_2_27) {
  const Machine h = machine(kH);
  cr_expect_eq(find(h, 2, 3).channels, 12);
  cr_expect_eq(find(h, 2, 3, {2, 27, 7}).channels, 16);
}

Test(nccl_search, takes_of_each_node_its_first_gpus) {
  const Machine h = machine(kH);
  const NcclJob job = find(h, 2, 4);
  cr_expect_eq(job.ranks, 8);
  cr_expect_eq(job.most_ranks_per_node, 4);
  cr_expect(find(h, 1, 8).graphs == find(h, 1).graphs);
  cr_expect_eq(find(h, 1, 1).ranks, 1);
  const NcclNodes too_many{&h, 2, 9};
  const auto release = find_nccl_release({2, 28, 9});
  cr_expect_eq(find_nccl_job(release->release, std::span(&too_many, 1)).error().text,
               "host: has 8 GPUs, and 9 of each node are to be used");
}

Test(nccl_search, takes_what_all_nodes_can) {
  const Machine h = machine(kH), a = machine(kA);
  const NcclNodes nodes[] = {{&h, 1}, {&a, 1}};
  const auto job = find_nccl_job(find_nccl_release({2, 28, 9})->release, nodes);
  cr_assert(job.has_value());
  cr_expect_eq(job->graphs.ring.intra, gigabytes(24));
  cr_expect_eq(job->graphs.tree.pattern, NcclPattern::tree);
  cr_expect_eq(job->min_compute_capability, 80);
  cr_expect_eq(job->max_compute_capability, 90);
  cr_expect(job->cpu == NcclCpu::x86_of_several_vendors && !job->nvls);
}

// Between AMD's sockets 16 GB/s fit, through a switch to the NIC 24.
Test(nccl_search, takes_sockets_for_nodes_where_the_network_is_faster) {
  const Plan plan{89, 0, "AuthenticAMD", 2, 4, 1, 200000, "16.0 GT/s PCIe"};
  const NcclJob job = find(machine(plan), 1);
  cr_expect_eq(job.nodes, 2);
  cr_expect_eq(job.ranks, 8);
  cr_expect_eq(job.most_ranks_per_node, 4);
  expect(job.graphs.ring, "pattern 4, 1 x 24/24, PIX/PIX, same 1, cross 0");
  expect(job.graphs.tree, "pattern 1, 1 x 15/15, PIX/PIX, same 1, cross 0");
}

Test(nccl_search, finds_nccls_graphs_of_a_mesh_of_nvlinks) {
  // DGX-1 with V100: of each GPU the peers and how many links lead there.
  using Peers = std::vector<std::pair<int, int>>;
  const std::vector<Peers> mesh = {
      {{1, 1}, {2, 1}, {3, 2}, {4, 2}}, {{0, 1}, {2, 2}, {3, 1}, {5, 2}},
      {{0, 1}, {1, 2}, {3, 2}, {6, 1}}, {{0, 2}, {1, 1}, {2, 2}, {7, 1}},
      {{0, 2}, {5, 1}, {6, 1}, {7, 2}}, {{1, 2}, {4, 1}, {6, 2}, {7, 1}},
      {{2, 1}, {4, 1}, {5, 2}, {7, 2}}, {{3, 1}, {4, 2}, {5, 1}, {6, 2}}};
  Plan plan{70, 0, "GenuineIntel", 4, 2, 1, 100000, "8.0 GT/s PCIe"};
  plan.mesh = &mesh;
  const Machine dgx1 = machine(plan);
  expect(find(dgx1, 1).graphs.ring, "pattern 4, 6 x 20/20, NVL/PIX, same 0, cross 0");
  const NcclJob two = find(dgx1, 2);
  expect(two.graphs.ring, "pattern 4, 4 x 12/12, NVL/PIX, same 0, cross 0");
  expect(two.graphs.tree, "pattern 1, 4 x 20/12, NVL/PIX, same 0, cross 0");
  cr_expect_eq(two.channels, 8);
}

Test(nccl_search, collnet_has_graphs_where_the_network_reduces) {
  const Machine h = machine(kH);
  const NcclNodes four{&h, 4};
  const auto job = find_nccl_job(find_nccl_release({2, 28, 9})->release, std::span(&four, 1),
                                 {.reduces = true, .gathers = true});
  cr_assert(job.has_value());
  cr_expect(job->collnet && job->collnet_gathers);
  cr_expect_eq(job->collnet_heads, 8);
  expect(job->graphs.collnet_chain, "pattern 3, 8 x 48/48, NVL/PIX, same 0, cross 0");
}

Test(nccl_search, ends_soon_on_large_nodes) {
  constexpr double kSoon = 20;  // of a busy machine, with sanitizers; else a tenth of a second
  const auto seconds = [](const Machine& machine, uint32_t nodes) {
    const auto start = std::chrono::steady_clock::now();
    find(machine, nodes);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto rack = read_synthetic("18x gb200-nvl72");
  cr_assert(rack.has_value());
  const auto domain = fuse(*rack, rack->hosts[0].domain);
  cr_assert(domain.has_value());
  const Machine many_nics = machine({.nics = 4, .nic_megabits = 100000});
  cr_expect_lt(seconds(*domain, 1), kSoon);
  cr_expect_lt(seconds(*domain, 2), kSoon);
  cr_expect_lt(seconds(many_nics, 2), kSoon);
}
