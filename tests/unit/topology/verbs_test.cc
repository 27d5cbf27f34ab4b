// SPDX-License-Identifier: Apache-2.0
// What verbs and sysfs tell of ports, through fake ones.
#include <criterion/criterion.h>

#include <algorithm>

#include "../../fake/sysfs.h"
#include "../../fake/verbs.h"
#include "machines.h"
#include "topology/check.h"
#include "topology/probe/seeing.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

struct FakeHost {
  fake::Sysfs sysfs;
  Verbs verbs = fake::verbs();
  std::string hcas;

  // Each RDMA device on a NIC of its own, with eth0 and eth1 over them.
  Machine look() const {
    Builder builder("here", "test");
    Device node{.kind = DeviceKind::numa};
    node.identity.number = 0;
    const uint32_t numa = builder.see(node);
    probe::NicNames names;
    for (const uint8_t i : {0, 1}) {
      Device nic{.kind = DeviceKind::nic, .parent = numa};
      nic.identity.bdf = Bdf{0, static_cast<uint8_t>(0x40 + i), 0, 0};
      names.net[fmt::format("eth{}", i)] = builder.see(nic);
      names.rdma[fmt::format("mlx5_{}", i)] = names.net[fmt::format("eth{}", i)];
    }
    names.rdma["mlx5_bond_0"] = names.net["eth0"];
    const auto told = probe::see_rdma_ports(builder, verbs, sysfs.root, names, hcas);
    for (const auto& [name, nic] : names.net)
      if (!told.contains(nic)) probe::see_net_port(builder, sysfs.root, name, nic);
    cr_assert(fake::rdma_open == 0, "%d devices were not closed", fake::rdma_open);
    auto machine = std::move(builder).build();
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
    return std::move(*machine);
  }
};

ibv_port_attr ethernet() {
  ibv_port_attr port{};
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = IBV_MTU_1024;
  port.active_speed = 64;  // HDR
  port.active_width = 2;   // 4x
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.lid = 1;  // means nothing
  port.gid_tbl_len = 8;
  return port;
}

int query_ethernet(ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
  *reinterpret_cast<ibv_port_attr*>(attributes) = ethernet();
  return 0;
}

// One RDMA device, over a bond of eth0 and eth1.
FakeHost bonded(const std::string& mode = "802.3ad 4") {
  FakeHost host;
  host.verbs.get_device_list = [](int* count) { return *count = 1, fake::rdma_list; };
  host.verbs.get_device_name = [](ibv_device*) { return "mlx5_bond_0"; };
  host.verbs.query_port_old = query_ethernet;
  host.sysfs.write("class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "bond0\n");
  host.sysfs.write("class/net/bond0/bonding/slaves", "eth0 eth1\n");
  host.sysfs.write("class/net/bond0/bonding/mode", mode + "\n");
  for (const char* member : {"eth0", "eth1"})
    host.sysfs.write(fmt::format("class/net/{}/carrier", member), "1\n");
  return host;
}

// A context of the extended kind, as all providers of today make.
struct Extended {
  verbs_context context{};
};
ibv_context* open_extended(ibv_device* device) {
  fake::rdma_open++;
  auto* const made = new Extended();
  made->context.context.device = device;
  made->context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  made->context.sz = sizeof(verbs_context);
  made->context.query_port = [](ibv_context*, uint8_t, ibv_port_attr* port, size_t bytes) {
    cr_assert(bytes >= 56);
    *port = ethernet();
    port->active_speed = 128;
    const uint32_t xdr = 256;
    std::memcpy(reinterpret_cast<char*>(port) + 52, &xdr, sizeof xdr);
    return 0;
  };
  return &made->context.context;
}
int close_extended(ibv_context* context) {
  fake::rdma_open--;
  delete reinterpret_cast<Extended*>(verbs_get_ctx(context));
  return 0;
}

}  // namespace

Test(verbs, a_port_is_described_whole) {
  const Machine m = FakeHost().look();
  const Device& port = *find(m, "mlx5_0");
  cr_assert(port.line_rate->value == gigabits(400) && port.mtu->value == 4096);
  cr_assert(port.link_layer->value == "InfiniBand" && port.lid->value == 7);
  cr_assert(port.subnet_prefix->value == 0xfe80000000000000u && port.carrier->value);
  cr_assert(*port.identity.guid == 0xa088c20300ab12cdu);
  const std::vector<Gid> gids = {{0, "fe80::a088:c203:ab:12cd", "IB"}};
  cr_assert(port.gids->value == gids, "%s", port.gids->value[0].address.c_str());
}

Test(verbs, nics_with_one_guid_for_the_host_stay_apart) {
  const Machine m = FakeHost().look();
  cr_assert(m.count(DeviceKind::nic) == 2 && m.count(DeviceKind::port) == 2);
  cr_assert(find(m, "nic0")->node_guid->value == 0xa088c20300ab0000u);
  cr_assert(find(m, "nic1")->node_guid == find(m, "nic0")->node_guid);
  cr_assert(find(m, "nic1")->sys_image_guid->value == 0xa088c20300ab0010u);
}

Test(verbs, holes_in_the_table_of_gids_are_skipped) {
  FakeHost host;
  host.verbs.query_port_old = query_ethernet;
  host.verbs.query_gid = [](ibv_context*, uint8_t, int index, ibv_gid* gid) {
    if (index == 3) return EINVAL;
    if (index == 2 || index > 4) return 0;  // zeros
    gid->global.subnet_prefix = htobe64(index == 4 ? 0 : 0xfe80000000000000u);
    gid->global.interface_id = htobe64(index == 4 ? 0xffffc000020au : 0x1234u);
    return 0;
  };
  for (const char* line : {"0=IB/RoCE v1\n", "1=RoCE v2\n", "4=RoCE v2\n"})
    host.sysfs.write(fmt::format("class/infiniband/mlx5_0/ports/1/gid_attrs/types/{}", line[0]),
                     line + 2);
  const Machine m = host.look();
  const std::vector<Gid> expected = {{0, "fe80::1234", "RoCE v1"},
                                     {1, "fe80::1234", "RoCE v2"},
                                     {4, "::ffff:192.0.2.10", "RoCE v2"}};
  cr_assert(find(m, "mlx5_0")->gids->value == expected);
  cr_assert(!find(m, "mlx5_0")->lid && !find(m, "mlx5_0")->subnet_prefix);
  cr_assert(find(m, "mlx5_0")->link_layer->value == "Ethernet");
}

Test(verbs, a_device_of_as_many_ports_as_can_be_told_is_looked_at_to_the_last, .timeout = 60) {
  FakeHost host;
  host.verbs.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    attributes->phys_port_cnt = 255;
    return 0;
  };
  cr_assert(host.look().count(DeviceKind::port) == 2 * 255);
}

Test(verbs, rates_beyond_eight_bits_are_read) {
  FakeHost host;
  host.verbs.open_device = open_extended;
  host.verbs.close_device = close_extended;
  cr_assert(find(host.look(), "mlx5_1")->line_rate->value == gigabits(800));
}

Test(verbs, ports_that_the_user_leaves_out_are_left_out_with_a_gap) {
  FakeHost host;
  host.hcas = "^mlx5_0";
  const Machine m = host.look();
  cr_assert(m.count(DeviceKind::port) == 1 && m.count(DeviceKind::nic) == 2);
  cr_assert(find(m, "mlx5_1") != nullptr);
  cr_assert(has_gap(m, "mlx5_0:1", "NCCL_IB_HCA (^mlx5_0) leaves it out"));
  host.hcas = "mlx5_1:2";
  cr_assert(host.look().count(DeviceKind::port) == 0);
}

Test(verbs, a_device_that_does_not_open_is_a_gap_and_its_network_device_counts) {
  FakeHost host;
  host.verbs.open_device = [](ibv_device* device) -> ibv_context* {
    return device == &fake::rdma_devices[0] ? nullptr : fake::verbs().open_device(device);
  };
  const Machine m = host.look();
  cr_assert(has_gap(m, "mlx5_0", "cannot be opened"));
  cr_assert(find(m, "eth0") != nullptr && find(m, "mlx5_1") != nullptr);
}

Test(verbs, a_bond_carries_what_its_members_do_together) {
  const FakeHost host = bonded();
  const Machine m = host.look();
  cr_assert(find(m, "nic0")->bond_members->value == 2);
  cr_assert(*find(m, "mlx5_bond_0")->line_rate == Known(gigabits(400), Provenance::assumed));
  cr_assert(m.nccl_links().size() == 1);  // NCCL believes what the driver tells of the port
  cr_assert(m.nccl_links()[0].bandwidth == known(gigabits(200), Provenance::driver));
  const auto findings = check(single_host(m));
  cr_assert(std::ranges::count(findings, "speed-unknown", &Finding::check) == 0);
  cr_assert(std::ranges::count(findings, "speed-absurd", &Finding::check) == 0);
  cr_assert(has_gap(m, "mlx5_bond_0", "a bond of 2 ports (eth0, eth1); each queue pair"));
  cr_assert(m.count(DeviceKind::port) == 1);  // eth1 is in the bond, too
}

Test(verbs, a_bond_whose_driver_tells_the_sum_is_not_counted_twice) {
  const FakeHost host = bonded();
  for (const char* member : {"eth0", "eth1"})
    host.sysfs.write(fmt::format("class/net/{}/speed", member), "100000\n");
  cr_assert(find(host.look(), "mlx5_bond_0")->line_rate->value == gigabits(200));
}

Test(verbs, a_bond_in_reserve_or_with_one_member_up_carries_one) {
  for (const char* mode : {"active-backup 1", "broadcast 3"})
    cr_assert(find(bonded(mode).look(), "mlx5_bond_0")->line_rate->value == gigabits(200));
  // The carrier of an interface that is down cannot be read.
  for (const char* carrier : {"0\n", ""}) {
    const FakeHost host = bonded();
    host.sysfs.write("class/net/eth1/carrier", carrier);
    const Machine m = host.look();
    cr_assert(*find(m, "mlx5_bond_0")->line_rate == Known(gigabits(200), Provenance::driver));
    cr_assert(has_gap(m, "mlx5_bond_0", "of which 1 is up"));
  }
}

Test(sysfs, a_network_device_tells_its_carrier_and_mtu) {
  FakeHost host;
  host.verbs.get_device_list = [](int* count) { return *count = 0, fake::rdma_list; };
  host.sysfs.write("class/net/eth0/carrier", "1\n");
  host.sysfs.write("class/net/eth0/mtu", "9000\n");
  host.sysfs.write("class/net/eth0/type", "1\n");
  host.sysfs.write("class/net/eth0/speed", "100000\n");
  host.sysfs.write("class/net/eth1/operstate", "down\n");
  const Machine m = host.look();
  const Device& port = *find(m, "eth0");
  cr_assert(port.carrier->value && port.mtu->value == 9000);
  cr_assert(port.line_rate->value == gigabits(100) && port.link_layer->value == "Ethernet");
  cr_assert(!find(m, "eth1")->carrier->value && !find(m, "eth1")->mtu);
}
