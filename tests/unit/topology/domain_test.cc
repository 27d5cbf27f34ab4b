// SPDX-License-Identifier: Apache-2.0
#include "topology/domain.h"

#include <criterion/criterion.h>

#include <cmath>

#include "machines.h"
#include "topology/format/formats.h"
#include "topology/path.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

uint32_t index_of(const Machine& machine, std::string_view label) {
  for (uint32_t i = 0; i < machine.devices().size(); i++)
    if (machine.devices()[i].label == label) return i;
  cr_assert(false, "no device %s", std::string(label).c_str());
  return 0;
}

Machine rack() {
  const Topology trays = *read_synthetic("18x gb200-nvl72");
  auto machine = fuse(trays, trays.hosts[0].domain);
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

}  // namespace

Test(domain, trays_by_name_are_racks_of_18) {
  const Topology trays = *read_synthetic("36x gb200-nvl72");
  cr_assert(trays.hosts[17].domain == trays.hosts[0].domain);
  cr_assert(trays.hosts[18].domain != trays.hosts[0].domain);
  cr_assert(read_synthetic("2x dgx-h100")->hosts[0].domain.empty());
}

Test(domain, a_rack_is_one_machine_of_72_gpus_on_18_nvswitches) {
  const Machine machine = rack();
  cr_assert(machine.count(DeviceKind::gpu) == 72);
  cr_assert(machine.count(DeviceKind::nvswitch) == 18);
  cr_assert(machine.count(DeviceKind::numa) == 36);
  cr_assert(machine.count(DeviceKind::port) == 72);
  cr_assert(nvlinks(machine) == 72 * 18);
  cr_assert(machine.devices()[index_of(machine, "gb200-nvl72-17/gpu3")].host == 17);
  cr_assert(validate(machine).has_value());
}

Test(domain, all_gpus_of_a_rack_reach_each_other_over_nvlink) {
  const Machine machine = rack();
  const Paths paths(machine, Paths::View::nccl);
  const uint32_t near = index_of(machine, "gb200-nvl72-0/gpu0");
  const uint32_t beside = index_of(machine, "gb200-nvl72-0/gpu1");
  const uint32_t far = index_of(machine, "gb200-nvl72-17/gpu3");
  cr_assert(paths.between(near, far) == paths.between(near, beside));
  cr_assert(paths.between(near, far).type == PathClass::nvl);
  const double rate = paths.between(near, far).bandwidth.bytes_per_second / 1e9;
  cr_assert(std::abs(rate - 40.1 * 18) < 1e-6, "%g GB/s", rate);
}

Test(domain, memory_and_ports_of_another_host_are_not_reached) {
  const Machine machine = rack();
  for (const auto view : {Paths::View::physical, Paths::View::nccl}) {
    const Paths paths(machine, view);
    const uint32_t gpu = index_of(machine, "gb200-nvl72-0/gpu0");
    for (const char* label : {"gb200-nvl72-1/numa0", "gb200-nvl72-1/mlx5_0"})
      cr_assert(paths.between(gpu, index_of(machine, label)).type == PathClass::dis, "%s", label);
    cr_assert(paths.between(gpu, index_of(machine, "gb200-nvl72-0/mlx5_0")).type <= PathClass::phb);
    cr_assert(paths.between(gpu, index_of(machine, "gb200-nvl72-0/numa0")).type == PathClass::c2c);
    cr_assert(paths
                  .between(index_of(machine, "gb200-nvl72-0/numa0"),
                           index_of(machine, "gb200-nvl72-1/numa0"))
                  .type == PathClass::dis);
  }
}

Test(domain, one_host_fused_is_as_it_was) {
  Topology one = *read_synthetic("dgx-h100");
  one.hosts[0].domain = "d";
  const Machine fused = *fuse(one, "d");
  cr_assert(fused.devices().size() == one.hosts[0].machine->devices().size());
  cr_assert(fused.links().size() == one.hosts[0].machine->links().size());
  for (size_t i = 0; i < fused.links().size(); i++)
    cr_assert(fused.links()[i].bandwidth->value ==
              one.hosts[0].machine->links()[i].bandwidth->value);
}

Test(domain, hosts_that_nothing_joins_are_no_domain) {
  cr_assert(!fuse(*read_synthetic("2x dgx-h100"), "nowhere"));
  Topology mixed = *read_synthetic("dgx-h100");
  mixed.hosts.push_back(read_synthetic("dgx-a100")->hosts[0]);
  for (Host& host : mixed.hosts) host.domain = "d";
  const auto fused = fuse(mixed, "d");
  cr_assert(!fused && fused.error().text.find("6 NVSwitches") != std::string::npos);
}

Test(domain, units_of_hosts_that_share_a_machine_stay_apart) {
  Topology two = *read_synthetic("2x dgx-h100");
  const uint32_t gpu = index_of(*two.hosts[0].machine, "gpu0");
  for (Host& host : two.hosts) {
    host.domain = "d";
    host.units = {{.device = gpu, .uuid = "GPU-" + host.name}};
  }
  const Machine fused = *fuse(two, "d");
  cr_assert(fused.count(DeviceKind::gpu) == 16);
  cr_assert(find(fused, "dgx-h100-1/gpu0")->identity.uuid == "GPU-dgx-h100-1");
}

Test(domain, refused_peers_stay_refused) {
  Topology one = *read_synthetic("dgx-h100");
  Machine::Parts parts = one.hosts[0].machine->parts();
  parts.refusals = {{index_of(*one.hosts[0].machine, "gpu0"),
                     index_of(*one.hosts[0].machine, "gpu1"), "the bridge is loose"}};
  one.hosts = {{"a", std::make_shared<const Machine>(std::move(parts)), "d"}};
  const Machine fused = *fuse(one, "d");
  cr_assert(fused.refusals().size() == 1);
  cr_assert(fused.devices()[fused.refusals()[0].a].label == "a/gpu0");
}
