// SPDX-License-Identifier: Apache-2.0
// The live probe over a recorded hwloc topology, a made-up sysfs, and fake drivers.
#include "topology/probe/live.h"

#include <criterion/criterion.h>

#include "../../fake/nvml.h"
#include "../../fake/verbs.h"
#include "machines.h"
#include "topology/check.h"

using namespace crosstie;
using namespace crosstie::test;
namespace fs = std::filesystem;

namespace {

class Party {
 public:
  Party() {
    std::string folder = (fs::temp_directory_path() / "crosstie-sysfs-XXXXXX").string();
    cr_assert(mkdtemp(folder.data()) != nullptr);
    drivers.sysfs = folder;
    drivers.verbs = Driver<Verbs>{fake::verbs(), "fake", {}};
    drivers.nvml = Driver<Nvml>{fake::nvml(), "fake", {}};
    for (const char* bdf : {"0000:1b:01.0", "0000:1c:00.0", "0000:93:01.0", "0000:94:00.0",
                            "0000:1a:00.0", "0000:1a:01.0", "0000:92:00.0", "0000:92:01.0",
                            "0000:19:00.0", "0000:91:00.0", "0000:18:01.0", "0000:90:01.0"})
      pcie(bdf, "32.0 GT/s PCIe", "16");
  }
  ~Party() { fs::remove_all(drivers.sysfs); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((drivers.sysfs / file).parent_path());
    std::ofstream(drivers.sysfs / file) << text << "\n";
  }
  void pcie(const std::string& bdf, const std::string& speed, const std::string& width) const {
    write("bus/pci/devices/" + bdf + "/max_link_speed", speed);
    write("bus/pci/devices/" + bdf + "/max_link_width", width);
  }
  Nvml& nvml() { return drivers.nvml->functions; }
  Verbs& verbs() { return drivers.verbs->functions; }

  Machine look() const {
    const auto xml = read_file(source_folder() + "/tests/unit/topology/two-sockets.hwloc.xml");
    auto machine = probe_live({drivers, "here", xml});
    cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
    return std::move(*machine);
  }

  Drivers drivers;
};

const Device& parent(const Machine& m, std::string_view label) {
  return m.devices()[find(m, label)->parent];
}

}  // namespace

Test(live, the_tree_is_that_of_the_host) {
  const Machine m = Party().look();
  cr_assert(m.count(DeviceKind::cpu) == 2);
  cr_assert(m.count(DeviceKind::numa) == 2);
  cr_assert(m.count(DeviceKind::gpu) == 2);  // the BMC's display adapter is none
  cr_assert(m.count(DeviceKind::nic) == 3);
  cr_assert(m.count(DeviceKind::pci_switch) == 2);
  cr_assert(to_text(*parent(m, "gpu0").identity.bdf) == "0000:19:00.0");  // the upstream port
  cr_assert(parent(m, "switch1").label == "numa1");
  cr_assert(parent(m, "numa1").model->value == "Intel Xeon 8480C");
  cr_assert(find_link(m, "numa0", "numa1")->bandwidth->value == gigabytes(22));
}

Test(live, nvml_and_hwloc_see_the_same_gpu_once) {
  const Machine m = Party().look();
  const Device& gpu = *find(m, "gpu0");
  cr_assert(gpu.identity.uuid == "GPU-0");
  cr_assert(gpu.compute_capability->value == 90);
  cr_assert(gpu.pcie_lanes->value == 16);
}

Test(live, only_nvlinks_that_are_up_count) {
  const Machine m = Party().look();
  cr_assert(m.count(DeviceKind::nvswitch) == 2);
  cr_assert(find_link(m, "gpu0", "nvswitch0")->count == 9);
  cr_assert(nvlinks(m) == 36);
}

Test(live, a_rdma_port_and_its_network_device_are_one_port) {
  const Machine m = Party().look();
  cr_assert(m.count(DeviceKind::port) == 3);  // mlx5_0, mlx5_1, eth9
  cr_assert(find(m, "ib0") == nullptr);
  cr_assert(find(m, "mlx5_0")->line_rate->value == gigabits(400));
  cr_assert(*find(m, "mlx5_1")->identity.guid == 0xa088c20300ab12cd);
  cr_assert(to_text(*parent(m, "mlx5_1").identity.bdf) == "0000:94:00.0");
  cr_assert(fake::rdma_open == 0, "%d devices were not closed", fake::rdma_open);
}

Test(live, the_speed_of_a_network_device_is_that_of_sysfs) {
  Party host;
  cr_assert(find(host.look(), "eth9")->line_rate->from == Provenance::assumed);
  host.write("class/net/eth9/speed", "25000");
  cr_assert(find(host.look(), "eth9")->line_rate->value == gigabits(25));
  host.write("class/net/eth9/speed", "-1");
  cr_assert(has_gap(host.look(), "eth9", "speed"));
}

Test(live, a_link_is_as_fast_as_its_slower_end) {
  Party host;
  host.pcie("0000:1a:00.0", "16.0 GT/s PCIe", "8");
  const Machine m = host.look();
  cr_assert(find(m, "gpu0")->pcie_speed->value == 16);
  cr_assert(find(m, "gpu0")->pcie_lanes->value == 8);
}

Test(live, an_unreadable_link_is_a_gap) {
  Party host;
  host.pcie("0000:1b:01.0", "Unknown", "255");
  host.pcie("0000:1a:00.0", "Unknown", "0");
  const Machine m = host.look();
  cr_assert(find(m, "gpu0")->pcie_speed->from == Provenance::assumed);
  cr_assert(has_gap(m, "gpu0", "PCIe speed and width"));
}

Test(live, a_device_that_the_firmware_did_not_place_is_placed_with_a_gap) {
  const Machine m = Party().look();
  cr_assert(has_gap(m, parent(m, "eth9").label, "NUMA node"));
  cr_assert_not(has_gap(m, parent(m, "mlx5_0").label, "NUMA node"));
}

Test(live, absent_drivers_are_gaps) {
  Party host;
  host.drivers.nvml = fail(Code::missing, "no NVML");
  host.drivers.verbs = fail(Code::missing, "no verbs");
  const Machine m = host.look();
  cr_assert(has_gap(m, "NVML", "no NVML"));
  cr_assert(has_gap(m, "verbs", "no verbs"));
  cr_assert(m.count(DeviceKind::gpu) == 2);
  cr_assert(find(m, "ib0") != nullptr);
}

Test(live, every_call_of_nvml_may_fail) {
  constexpr auto kFails = static_cast<NvmlReturn>(15);
  for (int call = 0; call < 7; call++) {
    Party host;
    Nvml& n = host.nvml();
    if (call == 0) n.device_count = [](unsigned*) { return kFails; };
    if (call == 1) n.device_by_index = [](unsigned, NvmlDevice*) { return kFails; };
    if (call == 2) n.pci_info = [](NvmlDevice, NvmlPciInfo*) { return kFails; };
    if (call == 3) n.uuid = n.name = [](NvmlDevice, char*, unsigned) { return kFails; };
    if (call == 4) n.compute_capability = [](NvmlDevice, int*, int*) { return kFails; };
    if (call == 5) n.nvlink_state = [](NvmlDevice, unsigned, NvmlEnable*) { return kFails; };
    if (call == 6) n.nvlink_remote = [](NvmlDevice, unsigned, NvmlPciInfo*) { return kFails; };
    const Machine m = host.look();
    cr_assert(m.count(DeviceKind::gpu) == 2, "call %d", call);
    cr_assert(call > 2 || nvlinks(m) == 0);
  }
}

Test(live, every_call_of_verbs_may_fail) {
  for (int call = 0; call < 5; call++) {
    Party host;
    Verbs& v = host.verbs();
    if (call == 0) v.get_device_list = [](int*) -> ibv_device** { return nullptr; };
    if (call == 1) v.open_device = [](ibv_device*) -> ibv_context* { return nullptr; };
    if (call == 2) v.query_device = [](ibv_context*, ibv_device_attr*) { return EIO; };
    if (call == 3)
      v.query_port_old = [](ibv_context*, uint8_t, _compat_ibv_port_attr*) { return EIO; };
    if (call == 4) v.query_gid = [](ibv_context*, uint8_t, int, ibv_gid*) { return EIO; };
    const Machine m = host.look();
    cr_assert(m.count(DeviceKind::nic) == 3, "call %d", call);
    cr_assert(m.count(DeviceKind::port) == 3, "call %d", call);
    cr_assert(fake::rdma_open == 0);
  }
}

Test(live, a_port_that_is_down_is_a_gap) {
  Party host;
  host.verbs().query_port_old = [](ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    reinterpret_cast<ibv_port_attr*>(attributes)->state = IBV_PORT_DOWN;
    return 0;
  };
  cr_assert(has_gap(host.look(), "mlx5_0", "not active"));
}

Test(live, an_infiniband_port_that_no_subnet_manager_set_up_has_a_link_and_no_lid) {
  Party host;
  host.verbs().query_port_old = [](ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
    port->state = IBV_PORT_INIT;
    port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    return 0;
  };
  const Machine m = host.look();
  cr_assert(find(m, "mlx5_0")->carrier->value && has_gap(m, "mlx5_0", "not active"));
  const auto findings = check(single_host(m));
  const auto is_about_lid = [](const Finding& finding) { return finding.check == "no-lid"; };
  cr_assert(std::ranges::any_of(findings, is_about_lid));
}

Test(live, soft_roce_sits_on_the_nic_of_its_network_device) {
  Party host;
  host.verbs().get_device_name = [](ibv_device* device) {
    return device == &fake::rdma_devices[0] ? "rxe0" : "rxe1";
  };
  host.write("class/infiniband/rxe0/parent", "eth9");
  const Machine m = host.look();
  cr_assert(to_text(*parent(m, "rxe0").identity.bdf) == "0000:f1:00.0");
  cr_assert(has_gap(m, parent(m, "rxe1").label, "no PCI function"));
}

Test(live, drivers_are_there_or_say_why_not) {
  const Drivers drivers = open_drivers();
  const auto fine = [](const auto& driver) {
    return driver ? !driver->version.empty() : !driver.error().text.empty();
  };
  cr_assert(fine(drivers.verbs) && fine(drivers.nvml) && fine(drivers.cuda) && fine(drivers.nccl));
}

Test(live, this_host_can_be_looked_at) {
  Drivers drivers;
  const auto machine = probe_live({drivers, "here"});
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  cr_assert(validate(*machine).has_value());
}
