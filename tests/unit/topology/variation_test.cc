// SPDX-License-Identifier: Apache-2.0
#include "topology/variation.h"

#include <criterion/criterion.h>

#include "topology/format/formats.h"
#include "topology/rails.h"

using namespace crosstie;

namespace {

Result<Topology> varied(std::string_view text) {
  const auto [name, changes] = split_variation(text);
  const auto variation = parse_variation(changes);
  if (!variation) return pass(variation);
  return vary(*read_synthetic(name), *variation);
}

Machine machine(std::string_view text) {
  const auto topology = varied(text);
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  cr_assert(validate(*topology->hosts[0].machine).has_value());
  return *topology->hosts[0].machine;
}

std::string error(std::string_view text) {
  const auto topology = varied(text);
  cr_assert(!topology, "%s is taken", std::string(text).c_str());
  return topology.error().text;
}

uint32_t nvlinks(const Machine& machine, uint32_t gpu) {
  uint32_t count = 0;
  for (const Link& link : machine.links())
    if (link.type == LinkType::nvlink && (link.a == gpu || link.b == gpu)) count += link.count;
  return count;
}

double gigabits_of_port(const Machine& machine, size_t i) {
  const uint32_t port = machine.of_kind(DeviceKind::port).at(i);
  return machine.devices()[port].line_rate->value.bytes_per_second * 8 / 1e9;
}

}  // namespace

Test(variation, a_name_ends_at_the_colon_before_changes) {
  cr_assert_eq(split_variation("dgx-h100:gpus=4").name, "dgx-h100");
  cr_assert_eq(split_variation("dgx-h100:gpus=4").changes, "gpus=4");
  cr_assert_eq(split_variation("a:b/c.xml").name, "a:b/c.xml");
  cr_assert_eq(split_variation("a:b/c.xml:nics=1,cpu=amd").name, "a:b/c.xml");
}

Test(variation, fewer_nics_are_spread_over_the_host) {
  const Machine four = machine("dgx-h100:nics=4");
  cr_assert_eq(four.count(DeviceKind::nic), 4u);
  for (const Rails::Port& port : match_rails(four).ports)
    cr_assert_eq(port.gpus.size(), 2u, "two GPUs to each NIC");
}

Test(variation, more_nics_stand_beside_those_that_are_there) {
  const Machine many = machine("dgx-h100:nics=16x800G");
  cr_assert_eq(many.count(DeviceKind::nic), 16u);
  for (size_t i = 0; i < 16; i++) cr_assert_float_eq(gigabits_of_port(many, i), 800, 1e-6);
  std::map<uint32_t, uint32_t> at;  // by what contains them
  for (const uint32_t nic : many.of_kind(DeviceKind::nic)) at[many.devices()[nic].parent]++;
  cr_assert_eq(at.size(), 8u);
  for (const auto& [parent, nics] : at) cr_assert_eq(nics, 2u);
}

Test(variation, the_rate_of_nics_alone_leaves_their_number) {
  const Machine slow = machine("dgx-h100:nics=200G");
  cr_assert_eq(slow.count(DeviceKind::nic), 8u);
  cr_assert_float_eq(gigabits_of_port(slow, 7), 200, 1e-6);
}

Test(variation, gpus_are_the_first_and_keep_their_nvlinks) {
  const Machine half = machine("dgx-h100:gpus=4");
  const auto gpus = half.whole_gpus();
  cr_assert_eq(gpus.size(), 4u);
  cr_assert_eq(half.devices()[gpus[3]].label, "gpu3");
  cr_assert_eq(nvlinks(half, gpus[0]), 18u);
  cr_assert_eq(half.count(DeviceKind::nic), 8u);
}

Test(variation, nvlinks_are_shared_out_over_the_switches) {
  const Machine h800 = machine("dgx-h100:nvlinks=9");
  for (const uint32_t gpu : h800.whole_gpus()) cr_assert_eq(nvlinks(h800, gpu), 9u);
  for (const Link& link : h800.links())
    if (link.type == LinkType::nvlink)
      cr_assert_float_eq(link.bandwidth->value.bytes_per_second / link.count, 20.6e9, 1e6);
  cr_assert_eq(machine("dgx-h100:nvlinks=3").count(DeviceKind::nvswitch), 3u);
  const Machine none = machine("dgx-h100:nvlinks=0");
  cr_assert_eq(none.count(DeviceKind::nvswitch), 0u);
  cr_assert_eq(nvlinks(none, none.whole_gpus()[0]), 0u);
}

Test(variation, several_changes_are_made_together) {
  const Machine other = machine("dgx-h100:gpus=2,nics=2x100G,network=roce,pcie=gen4,cpu=amd");
  cr_assert_eq(other.count(DeviceKind::gpu), 2u);
  cr_assert_eq(other.count(DeviceKind::nic), 2u);
  for (const Device& d : other.devices()) {
    if (d.kind == DeviceKind::port) cr_assert_eq(d.link_layer->value, "Ethernet");
    if (d.cpu) cr_assert_eq(d.cpu->value.vendor, "AuthenticAMD");
    if (d.pcie_speed) cr_assert_float_eq(d.pcie_speed->value, 16, 1e-9);
  }
  cr_assert_eq(other.name(), "dgx-h100:gpus=2,nics=2x100G,network=roce,pcie=gen4,cpu=amd");
}

Test(variation, ports_are_of_up_to_terabits) {
  const Machine fast = machine("dgx-h100:nics=8x1600G");
  for (const Device& d : fast.devices())
    if (d.kind == DeviceKind::port)
      cr_assert_float_eq(d.line_rate->value.bytes_per_second, 200e9, 1);
  cr_assert(error("dgx-h100:nics=8x10001G").find("write nics=") != std::string::npos);
}

Test(variation, sockets_are_ports_without_rdma) {
  const Machine plain = machine("dgx-h100:network=sockets");
  for (const Device& d : plain.devices())
    if (d.kind == DeviceKind::port) cr_assert_not(has_rdma(d));
}

Test(variation, hosts_of_a_cluster_get_domains_of_another_size) {
  const auto four = varied("4x gb200-nvl72:domain=2");
  cr_assert_eq(four->hosts[0].domain, four->hosts[1].domain);
  cr_assert_neq(four->hosts[1].domain, four->hosts[2].domain);
  cr_assert(varied("4x gb200-nvl72:domain=1")->hosts[0].domain.empty());
}

Test(variation, what_cannot_be_varied_is_said) {
  cr_assert(error("dgx-h100:nic=8").find("did you mean nics?") != std::string::npos);
  cr_assert(error("dgx-h100:nics=8x400").find("write nics=8x400G") != std::string::npos);
  cr_assert(error("dgx-h100:nics=0").find("write nics=") != std::string::npos);
  cr_assert(error("dgx-h100:nics=8x400G,nics=4x100G").find("'nics' is given twice") !=
            std::string::npos);
  cr_assert(error("dgx-h100:gpus=").find("write gpus=4") != std::string::npos);
  cr_assert(error("dgx-h100:gpus=4,").find("cannot be varied") != std::string::npos);
  cr_assert(error("dgx-h100:gpus=9").find("there are 8") != std::string::npos);
  cr_assert(error("pcie-a100x8:nvlinks=4").find("no NVLinks") != std::string::npos);
  cr_assert(error("pcie-a100x8:domain=2").find("no NVSwitch") != std::string::npos);
}
