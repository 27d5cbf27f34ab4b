// SPDX-License-Identifier: Apache-2.0
// Each promise of a Machine, broken once.
#include <criterion/criterion.h>

#include <algorithm>

#include "machines.h"
#include "one_host.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

Machine::Parts parts() {
  const auto m = read_host(read_file(golden("mini.xml")));
  cr_assert(m.has_value());
  return {m->name(),
          m->source(),
          {m->devices().begin(), m->devices().end()},
          {m->links().begin(), m->links().end()},
          {}};
}

void expect_broken(Machine::Parts p, const char* what) {
  const Status status = validate(Machine(std::move(p)));
  cr_assert_not(status.has_value(), "nothing is said of: %s", what);
  cr_assert(status.error().text.find(what) != std::string::npos, "%s", status.error().text.c_str());
}

uint32_t first(const Machine::Parts& p, DeviceKind kind) {
  uint32_t i = 0;
  while (p.devices[i].kind != kind) i++;
  return i;
}

}  // namespace

Test(validate, a_good_machine_passes) { cr_assert(validate(Machine(parts())).has_value()); }

Test(validate, a_machine_has_a_numa_node) { expect_broken({"x", "x", {}, {}, {}}, "no NUMA node"); }

Test(validate, a_parent_comes_first) {
  auto p = parts();
  const uint32_t gpu = first(p, DeviceKind::gpu);
  p.devices[gpu].parent = gpu;
  expect_broken(p, "comes before");
}

Test(validate, a_gpu_is_in_something) {
  auto p = parts();
  p.devices[first(p, DeviceKind::gpu)].parent = kNoDevice;
  expect_broken(p, "is in nothing");
}

Test(validate, a_gpu_is_in_no_port) {
  auto p = parts();
  auto& devices = p.devices;
  const uint32_t port = first(p, DeviceKind::port);
  for (uint32_t i = port; i < devices.size(); i++)
    if (devices[i].kind == DeviceKind::gpu) devices[i].parent = port;
  expect_broken(p, "cannot contain");
}

Test(validate, labels_are_unique) {
  auto p = parts();
  p.devices.back().label = p.devices.front().label;
  expect_broken(p, "label");
}

Test(validate, addresses_are_unique) {
  auto p = parts();
  for (Device& d : p.devices)
    if (d.kind == DeviceKind::gpu) d.identity.bdf = Bdf{0, 1, 0, 0};
  expect_broken(p, "identity");
}

Test(validate, numbers_of_numa_nodes_are_unique) {
  auto p = parts();
  for (Device& d : p.devices)
    if (d.kind == DeviceKind::numa) d.identity.number = 0;
  expect_broken(p, "number");
}

Test(validate, links_end_at_devices) {
  auto p = parts();
  p.links[0].b = 1000;
  expect_broken(p, "1000");
}

Test(validate, links_carry_something) {
  auto p = parts();
  p.links[0].bandwidth->value = {};
  expect_broken(p, "carries nothing");
}

Test(validate, a_link_of_unknown_speed_has_a_gap) {
  auto p = parts();
  p.links[0].bandwidth.reset();
  expect_broken(p, "no gap");
  p.gaps.push_back({p.devices[p.links[0].a].label, "its speed", ""});
  cr_assert(validate(Machine(p)).has_value());
}

Test(validate, there_are_no_islands) {
  auto p = parts();
  std::erase_if(p.links, [](const Link& link) { return link.type == LinkType::net; });
  expect_broken(p, "linked to nothing");
}

Test(validate, devices_are_nested_so_deep_and_no_deeper) {
  auto p = parts();
  const auto nest = [&](uint32_t times) {
    for (; times > 0; times--) {
      const auto next = static_cast<uint32_t>(p.devices.size());
      Device d{.kind = DeviceKind::pci_switch, .parent = next - 1};
      d.label = fmt::format("nested{}", next);
      if (p.devices.back().kind != DeviceKind::pci_switch) d.parent = first(p, DeviceKind::numa);
      p.links.push_back({d.parent, next, LinkType::pci, 1, known(gigabytes(1), Provenance::file)});
      p.devices.push_back(d);
    }
    std::ranges::sort(p.links, {}, [](const Link& l) { return std::tuple(l.a, l.b, l.type); });
  };
  nest(255);
  cr_assert(validate(Machine(p)).has_value());
  nest(1);
  expect_broken(p, "nested");
}

Test(validate, hosts_are_numbered_without_holes) {
  auto p = parts();
  p.devices.back().host = 1;
  cr_assert(validate(Machine(p)).has_value());
  p.devices.back().host = 2;
  expect_broken(p, "host 1 of 3");
  p.devices.back().host = UINT32_MAX;
  expect_broken(p, "beyond");
}

Test(validate, a_pcie_link_tells_speed_and_lanes_or_neither) {
  auto p = parts();
  Device& gpu = p.devices[first(p, DeviceKind::gpu)];
  gpu.pcie_lanes.reset();
  expect_broken(p, "alone");
  gpu.pcie_speed.reset();
  cr_assert(validate(Machine(p)).has_value());
}

Test(validate, a_port_has_a_line_rate) {
  auto p = parts();
  p.devices[first(p, DeviceKind::port)].line_rate.reset();
  expect_broken(p, "no line rate");
}

Test(validate, links_ascend_and_come_once) {
  auto p = parts();
  std::swap(p.links[0], p.links[1]);
  expect_broken(p, "out of order");
  p.links[0] = p.links[1];
  expect_broken(p, "twice");
}

Test(validate, what_nccl_takes_of_links_is_right_too) {
  auto p = parts();
  const uint32_t port = first(p, DeviceKind::port);
  p.nccl_links = {{p.devices[port].parent, port, LinkType::net, 1, {}}};
  expect_broken(p, "line rate that is unknown");
  p.nccl_links[0].bandwidth = known(gigabits(1), Provenance::file);
  cr_assert(validate(Machine(p)).has_value());
  p.nccl_links.push_back(p.nccl_links[0]);
  expect_broken(p, "twice");
  p.nccl_links = {{0, 1000, LinkType::nvlink, 1, {}}};
  expect_broken(p, "1000");
}

Test(validate, two_gpus_are_refused_once) {
  auto p = parts();
  std::vector<uint32_t> gpus;
  for (uint32_t i = 0; i < p.devices.size(); i++)
    if (p.devices[i].kind == DeviceKind::gpu) gpus.push_back(i);
  p.refusals = {{gpus[0], gpus[1], "one"}};
  cr_assert(validate(Machine(p)).has_value());
  p.refusals.push_back({gpus[0], gpus[1], "other"});
  expect_broken(p, "refusal twice");
  p.refusals = {{0, gpus[1], "no GPU"}};
  expect_broken(p, "no two GPUs");
}
