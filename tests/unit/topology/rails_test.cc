// SPDX-License-Identifier: Apache-2.0
#include "topology/rails.h"

#include <algorithm>
#include <map>

#include "knobs.h"
#include "plan.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// "gpu0: mlx5_0 mlx5_1; gpu1: …"
std::string text(const Machine& machine, const Rails& rails) {
  std::string out;
  for (const Rails::Gpu& gpu : rails.gpus) {
    out += (out.empty() ? "" : "; ") + machine.devices()[gpu.device].label + ":";
    for (const uint32_t port : gpu.ports) out += " " + machine.devices()[port].label;
  }
  return out;
}

void expect(const Machine& machine, const std::string& expected) {
  const std::string got = text(machine, match_rails(machine));
  cr_assert(got == expected, "%s, not %s", got.c_str(), expected.c_str());
}

const Rails::Port& port(const Machine& machine, const Rails& rails, std::string_view label) {
  for (const Rails::Port& p : rails.ports)
    if (machine.devices()[p.device].label == label) return p;
  cr_assert(false);
  return rails.ports[0];
}

}  // namespace

Test(rails, each_gpu_has_the_port_behind_its_switch_and_its_own_rail) {
  const Machine machine = usual_plan().build();
  expect(machine,
         "gpu0: mlx5_0; gpu1: mlx5_1; gpu2: mlx5_2; gpu3: mlx5_3; gpu4: mlx5_4; gpu5: mlx5_5; "
         "gpu6: mlx5_6; gpu7: mlx5_7");
  const Rails rails = match_rails(machine);
  for (uint32_t i = 0; i < 8; i++) cr_assert(rails.ports[i].rail == i);
}

Test(rails, a_rail_that_is_told_of_one_port_is_no_other_port_s) {
  Plan plan = usual_plan();
  plan.edit = [](Device& d) {
    if (d.label == "mlx5_5") d.rail = known(0, Provenance::file);
    if (d.label == "mlx5_2") d.rail = known(3, Provenance::file);
  };
  std::string rails;
  for (const Rails::Port& port : match_rails(plan.build()).ports)
    rails += fmt::format(" {}", *port.rail);
  cr_assert(rails == " 1 2 3 4 5 0 6 7", "%s", rails.c_str());
}

// gpu0 has no NIC of its own. If it took the nearest first, gpu1 would have to cross sockets.
Test(rails, a_gpu_leaves_the_nearest_port_to_the_gpu_beside_it) {
  const Plan plan{.numas = 2, .switches = {{0, 1, {}, true}, {0, 1, {400}}, {1, 0, {400}}}};
  expect(plan.build(), "gpu0: mlx5_1; gpu1: mlx5_0");
}

Test(rails, two_gpus_do_not_take_one_port_while_another_is_idle) {
  // Both GPUs are nearest to mlx5_0.
  const Plan plan{.switches = {{0, 2, {400}}, {0, 0, {400}}}};
  expect(plan.build(), "gpu0: mlx5_0; gpu1: mlx5_1");
}

Test(rails, many_ports_are_dealt_out_evenly) {
  const Plan plan{.switches = {{0, 2, std::vector<double>(8, 200.0)}}};
  expect(plan.build(), "gpu0: mlx5_0 mlx5_1 mlx5_2 mlx5_3; gpu1: mlx5_4 mlx5_5 mlx5_6 mlx5_7");
}

Test(rails, a_port_without_rdma_serves_only_where_none_has_it) {
  Plan plan{.switches = {{0, 2, {400, 400}}}};
  plan.edit = [](Device& d) {
    if (d.label == "mlx5_0") d.identity.number.reset();
  };
  const Machine machine = plan.build();
  expect(machine, "gpu0: mlx5_1; gpu1: mlx5_1");
  cr_assert(port(machine, match_rails(machine), "mlx5_0").idle == "no RDMA, which others have");
  plan.edit = [](Device& d) {
    if (d.kind == DeviceKind::port) d.identity.number.reset();
  };
  expect(plan.build(), "gpu0: mlx5_0; gpu1: mlx5_1");
}

Test(rails, few_ports_are_shared_by_the_gpus_near_them) {
  const Plan plan{.numas = 2, .switches = {{0, 2, {400}}, {1, 2, {400}}}};
  const Machine machine = plan.build();
  expect(machine, "gpu0: mlx5_0; gpu1: mlx5_0; gpu2: mlx5_1; gpu3: mlx5_1");
  const Rails rails = match_rails(machine);
  cr_assert(rails.ports[0].gpus.size() == 2 && rails.ports[1].gpus.size() == 2);
  cr_assert(rails.ports[1].rail == 1);
}

Test(rails, of_more_ports_than_can_be_dealt_out_the_nearest_serve) {
  const Plan plan{.numas = 2, .switches = {{1, 0, {400}}, {0, 2, {400, 400}}}};
  const Machine machine = plan.build();
  expect(machine, "gpu0: mlx5_1; gpu1: mlx5_2");
  const Rails rails = match_rails(machine);
  cr_assert(!port(machine, rails, "mlx5_0").idle.empty());
  cr_assert(!port(machine, rails, "mlx5_0").rail);
  cr_assert(port(machine, rails, "mlx5_1").rail == 0);
}

Test(rails, unequal_ports_are_spread_so_that_every_gpu_has_a_fast_one) {
  const Plan plan{.switches = {{0, 2, {400, 400, 100, 100}}}};
  expect(plan.build(), "gpu0: mlx5_0 mlx5_2; gpu1: mlx5_1 mlx5_3");
}

Test(rails, a_port_that_is_far_too_slow_serves_nobody) {
  const Plan few{.switches = {{0, 4, {400, 10, 400, 10}}}};
  const Machine machine = few.build();
  expect(machine, "gpu0: mlx5_0; gpu1: mlx5_0; gpu2: mlx5_2; gpu3: mlx5_2");
  cr_assert(port(machine, match_rails(machine), "mlx5_1").idle.find("slow") != std::string::npos);
  const Plan enough{.switches = {{0, 2, {400, 400, 25, 25}}}};
  expect(enough.build(), "gpu0: mlx5_0; gpu1: mlx5_1");
}

Test(rails, of_unequal_ports_that_are_shared_the_faster_serves_more) {
  const Plan plan{.switches = {{0, 3, {100, 200}}}};
  const Machine machine = plan.build();
  cr_assert(port(machine, match_rails(machine), "mlx5_1").gpus.size() == 2);
}

Test(rails, a_port_without_carrier_is_left_out_and_it_is_said) {
  Plan plan = usual_plan();
  plan.edit = change("mlx5_1", [](Device& d) { d.carrier = known(false, Provenance::driver); });
  const Machine machine = plan.build();
  const Rails rails = match_rails(machine);
  cr_assert(port(machine, rails, "mlx5_1").idle == "no carrier");
  for (const Rails::Gpu& gpu : rails.gpus) cr_assert(gpu.ports.size() == 1);
}

Test(rails, a_partition_has_the_ports_of_its_gpu) {
  Plan plan{.switches = {{0, 1, {400}}, {0, 1, {400}}}};
  plan.finish = [](Builder& builder) {
    const uint32_t whole = builder.see(on_pci(DeviceKind::gpu, "", 7, kNoDevice));
    for (const char* uuid : {"MIG-1", "MIG-2"})
      builder.see({.kind = DeviceKind::gpu, .parent = whole, .identity = {.uuid = uuid}});
  };
  plan.edit = change("gpu1", [](Device& d) { d.identity.bdf->bus = 7; });
  const Machine machine = plan.build();
  const Rails rails = match_rails(machine);
  cr_assert(rails.gpus.size() == 4);
  for (size_t i = 2; i < 4; i++) cr_assert(rails.gpus[i].ports == rails.gpus[1].ports);
  cr_assert(port(machine, rails, "mlx5_1").gpus.size() == 1);
}

Test(rails, the_rail_that_is_told_of_a_port_is_its_rail) {
  Plan plan = usual_plan();
  plan.edit = change("mlx5_3", [](Device& d) { d.rail = known(11, Provenance::file); });
  const Machine machine = plan.build();
  cr_assert(port(machine, match_rails(machine), "mlx5_3").rail == 11);
}

Test(rails, a_host_without_gpus_has_a_rail_for_each_port) {
  const Plan plan{.switches = {{0, 0, {100, 100}}}};
  const Machine machine = plan.build();
  const Rails rails = match_rails(machine);
  cr_assert(rails.ports[0].rail == 0 && rails.ports[1].rail == 1);
  cr_assert(rails.ports[0].idle == "no GPU on this host");
}

Test(rails, the_hosts_of_an_nvlink_domain_are_matched_each_by_itself) {
  Plan plan{.switches = {{0, 1, {400, 400}}, {0, 1, {}}}};
  plan.edit = [](Device& d) {
    if (d.label == "gpu1" || d.label == "switch1") d.host = 1;
  };
  const Machine machine = plan.build();
  expect(machine, "gpu0: mlx5_0 mlx5_1; gpu1:");
}

namespace {

// How good a matching is: pairs by class from the farthest, then bandwidth.
struct Worth {
  std::vector<int> far;
  double bandwidth = 0;
  bool operator<(const Worth& other) const {
    return far != other.far ? far < other.far : bandwidth > other.bandwidth + 1;
  }
};

Worth worth(const Paths& paths, const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  Worth out{std::vector<int>(12), 0};
  for (const auto& [gpu, port] : pairs) {
    const Path path = paths.between(gpu, port);
    out.far[static_cast<size_t>(PathClass::dis) - static_cast<size_t>(path.type)]++;
    out.bandwidth += path.bandwidth.bytes_per_second;
  }
  return out;
}

// Every way to give each of these rows another of the columns.
Worth best(const Paths& paths, const std::vector<uint32_t>& gpus, std::vector<uint32_t> ports) {
  std::ranges::sort(ports);
  std::optional<Worth> best;
  std::vector<size_t> order(ports.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  do {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (size_t i = 0; i < gpus.size(); i++) pairs.emplace_back(gpus[i], ports[order[i]]);
    const Worth own = worth(paths, pairs);
    if (!best || own < *best) best = own;
  } while (std::ranges::next_permutation(order).found);
  return *best;
}

Plan random_plan(Random& random) {
  Plan plan{.numas = 1 + static_cast<uint32_t>(random() % 2)};
  uint32_t gpus = 0;
  size_t ports = 0;
  for (int i = 0; i < 4; i++) {
    Plan::Switch group{.numa = static_cast<uint32_t>(random() % plan.numas),
                       .gpus = static_cast<uint32_t>(random() % 3),
                       .bare = random() % 3 == 0};
    while (ports < 6 && random() % 3 != 0) {
      group.ports.push_back(random() % 2 == 0 ? 400 : 300);
      ports++;
    }
    if (gpus + group.gpus > 6) group.gpus = 6 - gpus;
    gpus += group.gpus;
    plan.switches.push_back(group);
  }
  return plan;
}

}  // namespace

// Against all matchings of as many pairs there are, on machines small enough for that.
Test(rails, no_other_matching_is_better) {
  Random random = seeded_random();
  for (int round = 0; round < rounds(300); round++) {
    const Machine machine = random_plan(random).build();
    const Paths paths(machine, Paths::View::physical);
    const Rails rails = match_rails(machine, paths);
    std::vector<uint32_t> gpus, ports, loads;
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (const Rails::Gpu& gpu : rails.gpus)
      for (const uint32_t port : gpu.ports) {
        gpus.push_back(gpu.device);
        pairs.emplace_back(gpu.device, port);
      }
    for (const Rails::Port& port : rails.ports) {
      if (port.idle.find("slow") != std::string_view::npos) continue;
      const bool spare = port.gpus.empty();
      for (size_t i = 0; i < std::max<size_t>(1, port.gpus.size()); i++)
        ports.push_back(port.device);
      if (!spare) loads.push_back(static_cast<uint32_t>(port.gpus.size()));
    }
    if (pairs.empty() || ports.size() > 7) continue;
    const Worth least = best(paths, gpus, ports), own = worth(paths, pairs);
    cr_assert(!(least < own), "%s", text(machine, rails).c_str());
    cr_assert(rails.ports.empty() || rails.gpus.empty() ||
              rails.gpus.front().ports.size() == rails.gpus.back().ports.size());
  }
}

namespace {

// Switches with so many GPUs and 400 Gb/s ports behind each, as no host has.
Machine huge(uint32_t switches, uint32_t gpus, uint32_t ports) {
  Builder builder("huge", "test");
  const uint32_t numa = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
  uint32_t next = 0;
  const auto see = [&](DeviceKind kind, uint32_t above) {
    Device d = on_pci(kind, "", static_cast<uint8_t>(next % 256), above);
    d.identity.bdf->domain = next++ / 256;
    return builder.see(d);
  };
  for (uint32_t i = 0; i < switches; i++) {
    const uint32_t above = see(DeviceKind::pci_switch, numa);
    for (uint32_t n = 0; n < gpus; n++) see(DeviceKind::gpu, above);
    for (uint32_t n = 0; n < ports; n++) {
      Device port{.kind = DeviceKind::port, .parent = see(DeviceKind::nic, above)};
      port.line_rate = known(gigabits(400), Provenance::file);
      builder.see(port);
    }
  }
  auto machine = std::move(builder).build();
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

}  // namespace

// The best matching would take minutes.
Test(rails, in_a_huge_host_the_nearest_are_paired_first, .timeout = 60) {
  const Machine machine = huge(800, 1, 1);
  const Paths paths(machine, Paths::View::physical);
  const Rails rails = match_rails(machine, paths);
  cr_assert(!rails.best);
  for (const Rails::Gpu& gpu : rails.gpus) {
    cr_assert(gpu.ports.size() == 1);
    cr_assert(paths.between(gpu.device, gpu.ports[0]).type == PathClass::pix);
  }
  for (const Rails::Port& port : rails.ports) cr_assert(port.gpus.size() == 1);
}

Test(rails, in_a_huge_host_few_ports_are_shared_evenly, .timeout = 60) {
  const Rails rails = match_rails(huge(100, 9, 1));
  cr_assert(!rails.best);
  for (const Rails::Port& port : rails.ports) cr_assert(port.gpus.size() == 9);
}

Test(rails, a_gpu_takes_no_more_ports_than_add_something, .timeout = 60) {
  const Machine machine = huge(1, 1, 2000);
  const Rails rails = match_rails(machine);
  cr_assert(rails.best);
  cr_assert(rails.gpus[0].ports.size() == 11, "%zu", rails.gpus[0].ports.size());
  cr_assert(rails.ports.back().idle == "its GPUs gain nothing by more ports");
}
