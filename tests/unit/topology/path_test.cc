// SPDX-License-Identifier: Apache-2.0
// Paths: NCCL's classes on machines written here, and what must hold on any.
#include "topology/path.h"

#include <criterion/criterion.h>

#include <algorithm>

#include "one_host.h"
#include "topology/format/formats.h"

using namespace crosstie;
using test::read_host;

namespace {

Machine known(const char* name) { return *read_synthetic(name)->hosts[0].machine; }

Machine xml(const std::string& body) {
  auto read = read_host("<system version=\"1\">" + body + "</system>");
  cr_assert(read.has_value(), "%s", read ? "" : read.error().text.c_str());
  return std::move(*read);
}

std::string cpu(int numa, const char* vendor, const std::string& inside) {
  return fmt::format(
      "<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"{}\" familyid=\"6\" modelid=\"143\">{}</cpu>",
      numa, vendor, inside);
}
std::string gpu(int n, const std::string& links = "") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\"><gpu dev=\"{}\" sm=\"90\" gdr=\"1\">{}</gpu></pci>",
      0x10 + n, n, links);
}
std::string nic(int n, int gdr = 1) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\"><nic><net name=\"mlx5_{}\" dev=\"{}\" speed=\"400000\" port=\"1\" "
      "gdr=\"{}\"/></nic></pci>",
      0x40 + n, n, n, gdr);
}
std::string bridge(int n, const std::string& inside, const char* ids = "") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\" {} link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\">{}</pci>",
      0x80 + n, ids, inside);
}

uint32_t nth(const Machine& machine, DeviceKind kind, size_t n) {
  for (uint32_t i = 0; i < machine.devices().size(); i++)
    if (machine.devices()[i].kind == kind && n-- == 0) return i;
  cr_assert(false, "there is no such device");
  return 0;
}

void expect(const Machine& machine, Paths::View view, std::pair<DeviceKind, size_t> from,
            std::pair<DeviceKind, size_t> to, PathClass type, double gigabytes, uint32_t hops) {
  const Paths paths(machine, view);
  const Path path =
      paths.between(nth(machine, from.first, from.second), nth(machine, to.first, to.second));
  const double rate = path.bandwidth.bytes_per_second / 1e9;
  cr_expect(path.type == type && path.hops == hops && std::abs(rate - gigabytes) < 0.01 * gigabytes,
            "%s %g in %u hops, not %s %g in %u", std::string(name(path.type)).c_str(), rate,
            path.hops, std::string(name(type)).c_str(), gigabytes, hops);
}

constexpr auto kNccl = Paths::View::nccl, kPhysical = Paths::View::physical;
constexpr auto kGpu = DeviceKind::gpu, kPort = DeviceKind::port;

}  // namespace

Test(path, gpus_behind_nvswitches_are_two_hops_of_nvlink_apart) {
  expect(known("dgx-h100"), kNccl, {kGpu, 0}, {kGpu, 7}, PathClass::nvl, 370.8, 2);
}

Test(path, a_gpu_reaches_its_own_nic_directly_and_the_others_by_their_gpus) {
  const Machine h100 = known("dgx-h100");
  expect(h100, kNccl, {kGpu, 0}, {kPort, 0}, PathClass::pix, 48, 3);
  expect(h100, kNccl, {kGpu, 0}, {kPort, 5}, PathClass::pxn, 48, 5);
  // Not on the way back: NCCL receives at the GPU that is meant.
  expect(h100, kNccl, {kPort, 5}, {kGpu, 0}, PathClass::sys, 22, 6);
}

Test(path, one_pcie_switch_is_pix_several_are_pxb_and_the_cpu_is_phb) {
  const Machine machine =
      xml(cpu(0, "GenuineIntel",
              bridge(0, bridge(1, gpu(0) + nic(0)) + bridge(2, gpu(1) + nic(1))) + gpu(2)));
  expect(machine, kNccl, {kGpu, 0}, {kPort, 0}, PathClass::pix, 48, 3);
  expect(machine, kNccl, {kGpu, 1}, {kPort, 0}, PathClass::pxb, 48, 5);
  expect(machine, kPhysical, {kGpu, 0}, {kGpu, 1}, PathClass::pxb, 48, 4);
  expect(machine, kNccl, {kGpu, 2}, {kPort, 0}, PathClass::phb, 48, 5);
}

Test(path, the_bridges_of_one_switch_chip_are_one_switch) {
  const char* chip =
      "vendor=\"0x1000\" device=\"0xc010\" subsystem_vendor=\"0x1000\" subsystem_device=\"0xa096\"";
  const auto machine = [&](const char* below) {
    return xml(cpu(0, "GenuineIntel",
                   bridge(0, bridge(1, gpu(0), below) + bridge(2, nic(0), below), chip)));
  };
  expect(machine(chip), kNccl, {kGpu, 0}, {kPort, 0}, PathClass::pix, 48, 3);
  expect(machine(""), kNccl, {kGpu, 0}, {kPort, 0}, PathClass::pxb, 48, 5);
}

Test(path, without_gpu_direct_the_cpu_is_on_the_way) {
  const Machine machine = xml(cpu(0, "GenuineIntel", bridge(0, gpu(0) + nic(0, 0))));
  expect(machine, kNccl, {kGpu, 0}, {kPort, 0}, PathClass::phb, 48, 5);
  expect(machine, kPhysical, {kGpu, 0}, {kPort, 0}, PathClass::pix, 48, 3);
}

Test(path, a_gpu_hands_on_by_nvlink_once) {
  const auto to = [](int n) {
    return fmt::format("<nvlink target=\"0000:{:02x}:00.0\" count=\"2\" tclass=\"0x030200\"/>",
                       0x10 + n);
  };
  const Machine chain = xml(cpu(0, "GenuineIntel", gpu(0, to(1)) + gpu(1, to(0) + to(2))) +
                            cpu(1, "GenuineIntel", gpu(2, to(1) + to(3)) + gpu(3, to(2))));
  expect(chain, kNccl, {kGpu, 0}, {kGpu, 2}, PathClass::nvb, 41.2, 2);
  expect(chain, kPhysical, {kGpu, 0}, {kGpu, 3}, PathClass::sys, 22, 3);
}

Test(path, a_nic_of_the_cpu_to_which_a_gpu_has_c2c_is_p2c) {
  const Machine machine =
      xml(cpu(0, "GenuineIntel", gpu(0, "<c2c bw=\"44000\" count=\"10\"/>") + nic(0)));
  for (const Paths::View view : {kNccl, kPhysical})
    expect(machine, view, {kGpu, 0}, {kPort, 0}, PathClass::p2c, 48, 3);
}

// As long as nothing that is told is narrower.
Test(path, a_rate_is_assumed_where_that_of_the_narrowest_link_is) {
  const auto from = [](const Machine& m, size_t port) {
    return Paths(m, kPhysical).between(nth(m, kGpu, 0), nth(m, kPort, port)).from;
  };
  // Of which its PCIe link is not told.
  const auto odd_nic = [](int megabits) {
    return fmt::format(
        "<pci busid=\"0000:50:00.0\" class=\"0x020700\"><nic><net name=\"odd\" speed=\"{}\" "
        "port=\"1\"/></nic></pci>",
        megabits);
  };
  const Machine m = xml(cpu(0, "GenuineIntel", gpu(0) + nic(0) + odd_nic(400'000)) +
                        cpu(1, "GenuineIntel", nic(1)));
  cr_assert(from(m, 0) == Provenance::file);
  cr_assert(from(m, 1) == Provenance::assumed, "8 GT/s x16, of the NIC");
  cr_assert(from(m, 2) == Provenance::assumed, "between the CPUs");
  const Machine told = xml(cpu(0, "GenuineIntel", gpu(0) + odd_nic(10'000)));
  cr_assert(from(told, 0) == Provenance::file, "its port is slower than what is assumed");
}

// A bridge of which nothing is told, above the only one beneath it, is part of one switch.
Test(path, a_rate_is_assumed_where_that_of_an_idle_switch_is) {
  const Machine m = xml(cpu(0, "GenuineIntel",
                            "<pci busid=\"0000:70:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s "
                            "PCIe\" link_width=\"16\"><pci busid=\"0000:71:00.0\" "
                            "class=\"0x060400\">" +
                                gpu(0) + "</pci>" + nic(0) + "</pci>"));
  const Path path = Paths(m, kPhysical).between(nth(m, kGpu, 0), nth(m, kPort, 0));
  cr_assert(path.type == PathClass::pix && path.from == Provenance::assumed);
}

// On every machine built in: a route is as long and as narrow as its path says.
Test(path, routes_are_what_paths_say) {
  for (const KnownMachine& one : known_machines()) {
    const Machine machine = known(std::string(one.name).c_str());
    const Paths paths(machine, kPhysical);
    for (uint32_t from = 0; from < machine.devices().size(); from++)
      for (uint32_t to = 0; to < machine.devices().size(); to++) {
        const Path path = paths.between(from, to);
        const auto route = paths.route(from, to);
        cr_assert(route.empty() == (path.type == PathClass::dis));
        cr_assert(route.empty() || route.size() == path.hops + 1);
        if (machine.devices()[from].kind == kGpu && machine.devices()[to].kind == kGpu)
          cr_assert(path == paths.between(to, from));
      }
  }
}

// Whatever nodes are not told, nothing becomes an island.
Test(path, a_machine_of_unknown_numa_nodes_hangs_together) {
  const Machine machine =
      xml(cpu(-1, "GenuineIntel", gpu(0) + nic(0)) + cpu(1, "GenuineIntel", gpu(1) + nic(1)));
  const Paths paths(machine, kPhysical);
  for (const DeviceKind from : {kGpu, kPort})
    for (const DeviceKind to : {kGpu, kPort})
      for (size_t i = 0; i < 4; i++)
        cr_expect(paths.between(nth(machine, from, i % 2), nth(machine, to, i / 2)).type !=
                  PathClass::dis);
}

namespace {

// As many GPUs and NICs on one CPU.
Machine crowd(int count) {
  std::string inside;
  for (int i = 0; i < count; i++) {
    const auto function = [&](int bus, const char* kind, const std::string& inner) {
      return fmt::format(
          "<pci busid=\"{:04x}:{:02x}:00.0\" class=\"{}\" link_speed=\"32.0 GT/s PCIe\" "
          "link_width=\"16\">{}</pci>",
          bus, i % 256, kind, inner);
    };
    inside += function(i / 256, "0x030200", fmt::format("<gpu dev=\"{}\" sm=\"90\"/>", i));
    inside += function(16 + i / 256, "0x020700",
                       fmt::format("<nic><net name=\"mlx5_{}\" dev=\"{}\" speed=\"400000\" "
                                   "port=\"1\"/></nic>",
                                   i, i));
  }
  return xml(cpu(0, "GenuineIntel", inside));
}

}  // namespace

// What each port's GPU is was sought once for each GPU, and each GPU's CPU for each pair.
Test(path, of_a_crowded_host_are_found_soon, .timeout = 60) {
  const Machine machine = crowd(300);
  const Paths paths(machine, Paths::View::nccl);
  cr_assert(paths.between(nth(machine, kGpu, 0), nth(machine, kPort, 299)).type == PathClass::phb);
}

Test(path, a_machine_too_large_for_paths_is_told_apart) {
  cr_assert(paths_fit(known("dgx-h100")).has_value());
  const Status fits = paths_fit(crowd(2000));
  cr_assert(!fits && fits.error().text.find("6001 devices, of them 4001") != std::string::npos,
            "%s", fits ? "" : fits.error().text.c_str());
}
