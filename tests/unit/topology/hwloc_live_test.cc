// SPDX-License-Identifier: Apache-2.0
// What hwloc itself sees of a host that is made up here.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../fake/sysfs.h"
#include "machines.h"
#include "topology/probe/live.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

struct Node {
  int number;
  const char *cpus, *mask;
};

// hwloc, asked to look at a host of two packages, CPUs 0-1 and 2-3, made up here, as its own tests
// do.
void expect_overlap_is_a_gap(const std::array<Node, 2>& nodes) {
  const fake::Sysfs root;
  const auto system = std::string("sys/devices/system/");
  for (int cpu = 0; cpu < 4; cpu++) {
    const auto folder = system + fmt::format("cpu/cpu{}/topology/", cpu);
    const bool second = cpu >= 2;
    root.write(folder + "physical_package_id", second ? "1" : "0");
    root.write(folder + "core_id", std::to_string(cpu));
    for (const char* list : {"core_siblings_list", "package_cpus_list"})
      root.write(folder + list, second ? "2-3" : "0-1");
    for (const char* map : {"core_siblings", "package_cpus"})
      root.write(folder + map, second ? "c" : "3");
    for (const char* map : {"thread_siblings", "core_cpus"})
      root.write(folder + map, fmt::format("{:x}", 1 << cpu));
  }
  root.write(system + "cpu/online", "0-3");
  root.write(system + "cpu/possible", "0-3");
  root.write(system + "node/online", fmt::format("0,{}", nodes[1].number));
  for (const auto& [number, cpus, mask] : nodes) {
    const auto folder = system + fmt::format("node/node{}/", number);
    root.write(folder + "cpulist", cpus);
    root.write(folder + "cpumap", mask);
    root.write(folder + "distance", number == 0 ? "10 20" : "20 10");
    root.write(folder + "meminfo", fmt::format("Node {} MemTotal: 1024 kB", number));
  }
  cr_assert(setenv("HWLOC_FSROOT", root.root.c_str(), 1) == 0);
  cr_assert(setenv("HWLOC_THISSYSTEM", "1", 1) == 0);
  Drivers drivers;
  drivers.sysfs = root.root / "sys";
  const auto said = root.root / "stderr";
  std::fflush(stderr);
  const int before = dup(2), file = open(said.c_str(), O_CREAT | O_RDWR, 0600);
  dup2(file, 2);
  const auto machine = probe_live({drivers, "here"});
  dup2(before, 2);
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  cr_assert(read_file(said).empty(), "%s", read_file(said).c_str());
  cr_assert(machine->count(DeviceKind::numa) == 2, "%u", machine->count(DeviceKind::numa));
  cr_assert(has_gap(*machine, "packages", "overlap"));
}

}  // namespace

Test(hwloc, overlapping_nodes_and_packages_are_a_gap_and_nothing_is_printed) {
  expect_overlap_is_a_gap({{{0, "0,2", "5"}, {1, "1,3", "a"}}});
  expect_overlap_is_a_gap({{{0, "0,2", "5"}, {8, "1,3", "a"}}});  // as POWER9 numbers them
  // The first has a package whole and half of the other.
  expect_overlap_is_a_gap({{{0, "0-2", "7"}, {1, "3", "8"}}});
}
