// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "machines.h"
#include "topology/format/formats.h"
#include "topology/rails.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

Topology read(const std::string& toml) {
  auto topology = read_cluster_toml(toml, golden("test.toml"));
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  return std::move(*topology);
}

void expect_error(const std::string& toml, const std::string& about) {
  const auto topology = read_cluster_toml(toml, golden("test.toml"));
  cr_assert(!topology && topology.error().text.find(about) != std::string::npos, "%s: %s",
            toml.c_str(), topology ? "" : topology.error().text.c_str());
}

size_t kinds(const Topology& topology) {
  std::set<const Machine*> machines;
  for (const Host& host : topology.hosts) machines.insert(host.machine.get());
  return machines.size();
}

std::string hosts(const std::string& names, const std::string& more = "") {
  return "[[hosts]]\nnames = \"" + names + "\"\nmachine = \"dgx-h100\"\n" + more;
}

std::string leaves(const std::string& body) { return "[[leaves]]\n" + body; }

bool says(const Topology& topology, const std::string& device, const std::string& about) {
  for (const Gap& gap : topology.gaps)
    if (gap.device == device && gap.missing.find(about) != std::string::npos) return true;
  return false;
}

}  // namespace

Test(cluster_toml, hosts_rails_leaves_and_domains_are_as_written) {
  const auto topology = read_topology_file(golden("pod.cluster.toml"));
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  const Topology& t = *topology;
  cr_assert(t.hosts.size() == 22 && kinds(t) == 2);
  cr_assert(t.hosts[3].name == "h4" && t.hosts[21].name == "tray18");
  cr_assert(t.hosts[4].domain == "rack0" && t.hosts[0].domain.empty());
  cr_assert(t.leaves.size() == 17);
  const Leaf& leaf = t.leaves[t.hosts[3].leaves[7]];
  cr_assert(leaf.name == "leaf1-rail7" && leaf.rail == 7u);
  cr_assert(find(*t.hosts[0].machine, "mlx5_11")->rail->value == 7);
  cr_assert(says(t, "core", "rails 0 and 1"));
  cr_assert(says(t, "tray01", "to which leaf") && says(t, "tray01", "17 more hosts"));
  cr_assert(has_gap(*t.hosts[4].machine, "ports", "rails"), "assumed to be in their order");
}

Test(cluster_toml, a_file_named_like_a_known_machine_is_not_read_for_it) {
  char folder[] = "/tmp/crosstie-XXXXXX";
  cr_assert(::mkdtemp(folder) != nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "1x dgx-h100";
  std::ofstream(file) << "no machine";
  const auto topology = read_cluster_toml("[[hosts]]\nnames = \"a\"\nmachine = \"1x dgx-h100\"",
                                          std::filesystem::path(folder) / "test.toml");
  std::filesystem::remove_all(folder);
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
}

// The ports that are told are two of eight, and not in the order in which they would be matched.
Test(cluster_toml, ports_that_the_rails_leave_out_get_the_rails_that_are_free) {
  const Topology t = read(hosts("a", "rails = [\"mlx5_3\", [], \"mlx5_0\"]\n") +
                          leaves("name = \"l{rail}\"\nhosts = \"a\"\nrails = [0,1,2,3,7]"));
  const Machine& machine = *t.hosts[0].machine;
  std::string rails;
  for (const Rails::Port& port : match_rails(machine).ports) {
    const Device& d = machine.devices()[port.device];
    cr_expect(d.rail && port.rail == static_cast<uint32_t>(d.rail->value));
    rails += fmt::format("{}{}: {}", rails.empty() ? "" : ", ", d.label, *port.rail);
  }
  cr_expect(rails ==
                "mlx5_0: 2, mlx5_3: 0, mlx5_4: 1, mlx5_5: 3, mlx5_6: 4, mlx5_9: 5, mlx5_10: 6, "
                "mlx5_11: 7",
            "%s", rails.c_str());
  cr_expect(find(machine, "mlx5_0")->rail->from == Provenance::file);
  cr_expect(find(machine, "mlx5_4")->rail->from == Provenance::assumed);
  cr_expect(has_gap(machine, "ports", "the rail of mlx5_4, mlx5_5, mlx5_6, mlx5_9 and 2 more"));
  cr_expect(t.leaves[t.hosts[0].leaves[7]].name == "l7");
}

Test(cluster_toml, equal_machines_are_one_wherever_they_are_from) {
  const Topology t =
      read("[[hosts]]\nnames = \"a\"\nmachine = \"mini.xml\"\n" + hosts("b[1-3]") + hosts("c") +
           "[[hosts]]\nnames = \"d\"\nmachine = \"../golden/mini.xml\"\n");
  cr_assert(t.hosts.size() == 6 && kinds(t) == 2, "%zu kinds", kinds(t));
}

Test(cluster_toml, each_host_may_have_its_own_file) {
  const Topology t = read("[[hosts]]\nnames = \"mini,odd\"\nmachine = \"{host}.xml\"");
  cr_assert(kinds(t) == 2 && t.hosts[0].machine->count(DeviceKind::gpu) == 2);
}

Test(cluster_toml, a_guest_gets_its_overlay) {
  const Topology t = read(
      "[[hosts]]\nnames = \"vm[1-2]\"\nmachine = \"guest.xml\"\noverlay = \"guest.overlay.toml\"");
  cr_assert(t.hosts[1].machine->count(DeviceKind::pci_switch) == 4);
}

Test(cluster_toml, a_mistake_is_an_error_that_names_its_line) {
  expect_error("", "a cluster needs [[hosts]]");
  expect_error("[[hosts]]\nnames = \"a\"", "line 1: 'machine' is needed");
  expect_error("[[hosts]]\nnames = 3\nmachine = \"dgx-h100\"", "line 2: names of hosts");
  expect_error(hosts("a[1-"), "line 2: 'a[1-' has a bracket without its other");
  expect_error(hosts("a,a"), "host a is listed twice");
  expect_error(hosts("a") + hosts("a"), "line 4: host a is listed twice");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = \"dgx-h10\"", "did you mean dgx-h100?");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = \"2x dgx-h100\"", "is 2 hosts");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = \"pod.cluster.toml\"", "no key 'hosts'");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = {}", "a table [cpu] is needed");
  expect_error("[[hosts]]\nnames = [\"a[1-1000000]\", \"b[1-1000000]\"]\nmachine = \"dgx-h100\"",
               "more than 1048576 hosts");
  expect_error(hosts("a") + hosts("b[1-1048576]"), "more than 1048576 hosts in all");
  expect_error(hosts("a", "rail = []"), "no key 'rail'; it has names, machine, rails");
  expect_error(hosts("a", "rails = [\"mlx5_1\"]"), "line 4: dgx-h100 has no port 'mlx5_1'");
  expect_error(hosts("a", "rails = [\"mlx5_0\", \"mlx5_0\"]"), "on rail 0 already");
  expect_error(hosts("a[1-4]", "domain = \"d\"\nhosts_per_domain = 2"), "needs {group}");
  expect_error(hosts("a", "hosts_per_domain = 2"), "needs 'domain'");
  const std::string racks = "[[hosts]]\nnames = \"a[1-40]\"\nmachine = \"gb200-nvl72\"\n";
  expect_error(racks + "domain = \"r{group}\"\nhosts_per_domain = 20\n", "joins at most 18");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = \"odd.xml\"\ndomain = \"d\"", "no NVSwitch");
  expect_error("[[hosts]]\nnames = \"a\"\nmachine = \"no.xml\"", "neither a file nor");
  expect_error(hosts("a", "overlay = \"no.toml\""), "cannot be opened");
  expect_error(hosts("a", "overlay = { swich = 1 }"), "no key 'swich'");
}

Test(cluster_toml, wrong_cabling_is_an_error_that_names_the_host) {
  expect_error(hosts("a") + leaves("name = \"l\"\nhosts = \"b\"\nrails = [0]"),
               "no [[hosts]] lists host b");
  expect_error(hosts("a") + leaves("name = \"l\"\nhosts = \"a\"\nrails = [8]"),
               "a has no port on rail 8");
  expect_error(hosts("a") + leaves("name = \"l\"\nhosts = \"a\""), "'rails' is needed");
  expect_error(hosts("a") + leaves("name = \"l\"\nhosts = \"a\"\nrails = [0]\n") +
                   leaves("name = \"m\"\nhosts = \"a\"\nrails = [0]"),
               "rail 0 of a is cabled to l and to m");
  expect_error(hosts("a[1-2]") + leaves("name = \"l\"\nhosts = \"a[1-2]\"\nrails = [0]\n"
                                        "hosts_per_leaf = 1"),
               "needs {group}");
}

Test(cluster_toml, a_host_of_no_leaf_is_told) {
  const Topology t = read(hosts("a[1-2]") + leaves("name = \"l{rail}\"\nhosts = \"a1\"\n"
                                                   "rails = [0,1,2,3,4,5,6,7]"));
  cr_assert(says(t, "a2", "to which leaf") && t.gaps.size() == 1);
}

Test(cluster_toml, a_cluster_of_2048_hosts_is_one_machine) {
  const Topology t =
      read(hosts("n[0001-2048]") + leaves("name = \"p{group}-r{rail}\"\nhosts = \"n[0001-2048]\"\n"
                                          "rails = [0,1,2,3,4,5,6,7]\nhosts_per_leaf = 32"));
  cr_assert(t.hosts.size() == 2048 && kinds(t) == 1 && t.leaves.size() == 512);
  cr_assert(t.leaves[t.hosts[2047].leaves[7]].name == "p63-r7");
  cr_assert(t.gaps.empty());
}
