// SPDX-License-Identifier: Apache-2.0
// What NVML and CUDA tell, through fake ones.
#include <criterion/criterion.h>

#include <algorithm>

#include "../../fake/nvml.h"
#include "machines.h"
#include "topology/check.h"
#include "topology/path.h"
#include "topology/probe/seeing.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

constexpr auto kNvmlNotSupported = static_cast<NvmlReturn>(3);

Machine built(Builder&& builder) {
  auto machine = std::move(builder).build();
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}

// Two NUMA nodes; the GPUs hang on the first if `placed`, as PCI would tell.
Machine look(const Nvml& nvml, bool placed = true) {
  Builder builder("here", "test");
  const uint32_t first = builder.see(numa(0));
  builder.see(numa(1));
  for (const uint8_t bus : {0x1b, 0x93}) {
    Device gpu{.kind = DeviceKind::gpu, .parent = placed ? first : kNoDevice};
    gpu.identity.bdf = Bdf{0, bus, 1, 0};
    gpu.pcie_speed = known(32.0, Provenance::driver);
    gpu.pcie_lanes = known(16, Provenance::driver);
    builder.see(gpu);
  }
  probe::see_nvidia_gpus(builder, nvml);
  return built(std::move(builder));
}

uint32_t index_of(const Machine& machine, std::string_view label) {
  return static_cast<uint32_t>(find(machine, label) - machine.devices().data());
}

bool has_gap_about(const Machine& machine, std::string_view about) {
  return std::ranges::any_of(
      machine.gaps(), [&](const Gap& gap) { return gap.missing.find(about) != std::string::npos; });
}

size_t findings(const Machine& machine, std::string_view name) {
  const auto all = check(single_host(machine));
  return static_cast<size_t>(std::ranges::count(all, name, &Finding::check));
}

NvmlReturn completed(NvmlDevice, NvmlFabricInfo* info) {
  cr_assert(info->version == 0x2000024);
  info->state = kNvmlFabricCompleted;
  info->status = kNvmlSuccess;
  info->clique = 7;
  info->health = 0xaa;  // all well
  std::fill(std::begin(info->cluster), std::end(info->cluster), 0xab);
  return kNvmlSuccess;
}

}  // namespace

Test(nvml, an_old_driver_leaves_out_what_it_does_not_know) {
  const Machine m = look(fake::nvml());
  cr_assert(m.count(DeviceKind::gpu) == 2);
  cr_assert(m.gaps().empty() || !has_gap_about(m, "NVML"));
  cr_assert(find(m, "gpu1")->index->value == 1);
  cr_assert(!find(m, "gpu0")->nvlink_version && !find(m, "gpu0")->fabric);
}

Test(nvml, what_a_driver_does_not_answer_is_left_out_as_well) {
  constexpr auto kFails = kNvmlNotSupported;
  Nvml n = fake::nvml();
  n.nvlink_version = [](NvmlDevice, unsigned, unsigned*) { return kFails; };
  n.nvlink_remote_type = [](NvmlDevice, unsigned, NvmlRemote*) { return kFails; };
  n.field_values = [](NvmlDevice, int, NvmlFieldValue*) { return kFails; };
  n.fabric_info = [](NvmlDevice, NvmlFabricInfo*) { return kFails; };
  n.p2p_status = [](NvmlDevice, NvmlDevice, NvmlP2pIndex, NvmlP2pStatus*) { return kFails; };
  n.memory_affinity = [](NvmlDevice, unsigned, unsigned long*, unsigned) { return kFails; };
  n.mig_mode = [](NvmlDevice, unsigned*, unsigned*) { return kFails; };
  n.mig_count = [](NvmlDevice, unsigned*) { return kFails; };
  n.mig_by_index = [](NvmlDevice, unsigned, NvmlDevice*) { return kFails; };
  const Machine m = look(n), old = look(fake::nvml());
  cr_assert(m.devices().size() == old.devices().size() && m.gaps().size() == old.gaps().size());
  cr_assert(m.links().size() == old.links().size() && m.refusals().empty());
}

Test(nvml, of_links_that_answer_only_those_that_are_up_count) {
  Nvml n = fake::nvml();
  n.nvlink_version = [](NvmlDevice, unsigned, unsigned* version) {
    return *version = 6, kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(nvlinks(m) == 36, "%u", nvlinks(m));  // 18 a GPU of 36 that answer
  cr_assert(find(m, "gpu0")->nvlink_version->value == "4.0");
}

Test(nvml, from_hopper_on_a_field_tells_which_links_are_up_as_nccl_asks_it) {
  Nvml n = fake::nvml();
  n.field_values = [](NvmlDevice, int, NvmlFieldValue* value) {
    value->value.number = value->scope < 16 ? kNvmlEnabled : kNvmlDisabled;
    value->result = value->field == kNvmlNvlinkState ? kNvmlSuccess : kNvmlNotSupported;
    return kNvmlSuccess;
  };
  cr_assert(nvlinks(look(n)) == 2 * 16);
  n.compute_capability = [](NvmlDevice, int* major, int* minor) {
    return *major = 8, *minor = 0, kNvmlSuccess;
  };
  cr_assert(nvlinks(look(n)) == 2 * 18);
}

Test(nvml, links_that_carry_no_peer_to_peer_traffic_are_left_out_as_nccl_does_and_found_by_check) {
  Nvml n = fake::nvml();
  n.nvlink_capability = [](NvmlDevice device, unsigned link, NvmlLinkCapability, unsigned* has) {
    *has = link >= 4;
    return fake::nvml_index(device) == 1 && link == 5 ? kNvmlNotSupported : kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(nvlinks(m) == 14 + 13, "%u", nvlinks(m));
  cr_assert(has_gap(m, "gpu0", "4 of its NVLinks are up, but carry no peer-to-peer"));
  cr_assert(has_gap(m, "gpu1", "5 of its NVLinks are up, but carry no peer-to-peer"));
  cr_assert(findings(m, "link-unsure") == 2);
  cr_assert(findings(look(fake::nvml()), "link-unsure") == 0);
}

Test(nvml, the_other_end_of_a_link_is_what_nvml_says_it_is) {
  Nvml n = fake::nvml();
  n.nvlink_remote_type = [](NvmlDevice, unsigned link, NvmlRemote* type) {
    *type = link < 6 ? kNvmlRemoteNpu : link < 12 ? kNvmlRemoteGpu : kNvmlRemoteSwitch;
    return kNvmlSuccess;
  };
  n.nvlink_remote = [](NvmlDevice device, unsigned link, NvmlPciInfo* info) {
    const unsigned peer = fake::nvml_index(device) == 0 ? 0x93 : 0x1b;
    fake::nvml_address(info, link < 12 ? peer : 0xff, link < 12 ? 1 : 0xff);
    return kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(find_link(m, "gpu0", "gpu1")->count == 6);
  // An NVSwitch of another tray has no address here, and is one for all GPUs.
  cr_assert(m.count(DeviceKind::nvswitch) == 1);
  cr_assert(find_link(m, "gpu1", "nvswitch0")->count == 6);
  uint32_t to_cpu = 0;
  for (const Link& link : m.links())
    if (link.type == LinkType::nvlink && m.devices()[link.a].kind == DeviceKind::numa)
      to_cpu += link.count;
  cr_assert(to_cpu == 12, "%u", to_cpu);
}

Test(nvml, a_peer_that_is_hidden_is_no_nvswitch) {
  Nvml n = fake::nvml();
  n.nvlink_remote_type = [](NvmlDevice, unsigned, NvmlRemote* type) {
    return *type = kNvmlRemoteGpu, kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(m.count(DeviceKind::nvswitch) == 0 && nvlinks(m) == 0);
  cr_assert(has_gap(m, "gpu0", "nvlink to 0000:fe:00.0, which is not described"));
}

Test(nvml, chip_to_chip_links_that_are_up_lead_to_the_cpu) {
  Nvml n = fake::nvml();
  n.field_values = [](NvmlDevice, int, NvmlFieldValue* value) {
    value->result = kNvmlSuccess;
    value->value.number = value->field == kNvmlC2cLinkCount    ? 10
                          : value->field == kNvmlC2cLinkStatus ? value->scope < 9
                                                               : 44712;
    return kNvmlSuccess;
  };
  const Machine m = look(n);
  const auto c2c = std::ranges::find(m.links(), LinkType::c2c, &Link::type);
  cr_assert(c2c != m.links().end() && c2c->count == 9);
  cr_assert(std::abs(c2c->bandwidth->value.bytes_per_second - 9 * 44.712e9) < 1);
  cr_assert(has_gap(m, "gpu0", "of 10 C2C links 9 are up"));
  n.field_values = [](NvmlDevice, int, NvmlFieldValue* value) {
    return value->result = kNvmlNotSupported, kNvmlSuccess;
  };
  cr_assert_not(has_gap_about(look(n), "C2C"));
}

Test(nvml, a_fabric_counts_once_its_registration_is_completed_and_not_before_it_was_tried) {
  Nvml n = fake::nvml();
  n.fabric_info = completed;
  const Machine m = look(n);
  const FabricClique expected{"abababab-abab-abab-abab-abababababab", 7};
  cr_assert(find(m, "gpu0")->fabric->value == expected);
  cr_assert(has_gap(m, "NVLink fabric " + expected.cluster, "told, not tried"));
}

Test(nvml, a_fabric_of_zeros_or_in_bad_health_is_none) {
  Nvml n = fake::nvml();
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    std::fill(std::begin(info->cluster), std::end(info->cluster), 0);
    return kNvmlSuccess;
  };
  cr_assert(!find(look(n), "gpu0")->fabric);
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    info->health = 0x9a;  // its routes are not healthy
    return kNvmlSuccess;
  };
  cr_assert(!find(look(n), "gpu0")->fabric);
  cr_assert(has_gap(look(n), "gpu0", "not healthy (mask 0x9a): its routes are not healthy"));
  cr_assert(findings(look(n), "fabric-unsure") == 1);
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    info->status = static_cast<NvmlReturn>(15);
    return kNvmlSuccess;
  };
  cr_assert(has_gap(look(n), "gpu0", "failed: made to fail"));
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    info->state = kNvmlFabricInProgress;
    return kNvmlSuccess;
  };
  cr_assert(!find(look(n), "gpu0")->fabric);
  cr_assert(has_gap(look(n), "gpu0", "not completed"));
}

Test(nvml, a_fabric_that_is_set_up_wrongly_is_none_and_says_what_is_wrong) {
  static unsigned wrong;
  Nvml n = fake::nvml();
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    info->health = 0xa9 | wrong << 8;
    return kNvmlSuccess;
  };
  for (const auto& [code, words] : {std::pair(2u, "system GUID is wrong"),
                                    {3u, "chassis is wrong"},
                                    {4u, "in no partition"},
                                    {5u, "too few NVLinks"},
                                    {6u, "firmware does not fit"},
                                    {7u, "place in it is wrong"},
                                    {15u, "set up wrongly"}}) {
    wrong = code;
    const Machine m = look(n);
    cr_assert(!find(m, "gpu0")->fabric && has_gap(m, "gpu0", words), "%s", words);
    cr_assert(has_gap(m, "gpu0", "its bandwidth is degraded, "));
    cr_assert(findings(m, "fabric-unsure") == 1);
  }
  n.fabric_info = [](NvmlDevice device, NvmlFabricInfo* info) {
    completed(device, info);
    info->health = 0x1aa;  // all well, and nothing set up wrongly
    return kNvmlSuccess;
  };
  cr_assert(find(look(n), "gpu0")->fabric && findings(look(n), "fabric-unsure") == 0);
}

Test(nvml, a_pair_that_may_not_talk_directly_goes_by_the_cpu) {
  Nvml n = fake::nvml();
  n.p2p_status = [](NvmlDevice, NvmlDevice, NvmlP2pIndex index, NvmlP2pStatus* status) {
    *status = index == kNvmlP2pWrite ? kNvmlP2pNotSupported : kNvmlP2pOk;
    return kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(m.refusals().size() == 1);
  cr_assert(m.refusals()[0].why == "NVML: it is not supported");
  const uint32_t a = index_of(m, "gpu0"), b = index_of(m, "gpu1");
  cr_assert(m.refusals()[0].a == a && m.refusals()[0].b == b);
  cr_assert(Paths(m, Paths::View::physical).between(a, b).type == PathClass::nvl);
  cr_assert(Paths(m, Paths::View::nccl).between(a, b).type == PathClass::phb);
  cr_assert(Paths(m, Paths::View::nccl).between(b, a).type == PathClass::phb);
  n.p2p_status = [](NvmlDevice, NvmlDevice, NvmlP2pIndex, NvmlP2pStatus* status) {
    return *status = kNvmlP2pOk, kNvmlSuccess;
  };
  cr_assert(look(n).refusals().empty());
}

Test(nvml, a_numa_node_that_the_firmware_keeps_is_nvmls) {
  Nvml n = fake::nvml();
  n.memory_affinity = [](NvmlDevice, unsigned, unsigned long* nodes, unsigned) {
    return nodes[0] = 2, kNvmlSuccess;
  };
  const Machine m = look(n, false);
  cr_assert(m.devices()[find(m, "gpu0")->parent].label == "numa1");
  cr_assert(has_gap(m, "gpu0", "firmware does not tell its NUMA node"));
  // PCI's word stands; several nodes are none.
  const Machine placed = look(n);
  cr_assert(placed.devices()[find(placed, "gpu0")->parent].label == "numa0");
  cr_assert_not(has_gap(placed, "gpu0", "NUMA node"));
  n.memory_affinity = [](NvmlDevice, unsigned, unsigned long* nodes, unsigned) {
    return nodes[0] = 2, nodes[1] = 1, kNvmlSuccess;
  };
  const Machine several = look(n, false);
  cr_assert(has_gap(several, "gpu0", "its NUMA node is not known"));
}

Test(nvml, partitions_are_gpus_of_their_own_in_the_one_that_they_are_of) {
  Nvml n = fake::nvml();
  n.mig_mode = [](NvmlDevice device, unsigned* now, unsigned* pending) {
    return *now = *pending = fake::nvml_index(device) == 1, kNvmlSuccess;
  };
  n.mig_count = [](NvmlDevice, unsigned* most) { return *most = 7, kNvmlSuccess; };
  n.mig_by_index = [](NvmlDevice, unsigned index, NvmlDevice* partition) {
    *partition = reinterpret_cast<NvmlDevice>(fake::nvml_gpus + 10 + index);
    return index == 5 ? kNvmlNotSupported : kNvmlSuccess;  // a hole
  };
  n.uuid = [](NvmlDevice device, char* text, unsigned bytes) {
    const unsigned index = fake::nvml_index(device);
    std::snprintf(text, bytes, "%s-%u", index < 10 ? "GPU" : "MIG", index);
    return kNvmlSuccess;
  };
  const Machine m = look(n);
  cr_assert(m.count(DeviceKind::gpu) == 1 + 6);  // work goes to the partitions, not to the whole
  const Device& partition = *find(m, "gpu1-mig6");
  cr_assert(partition.identity.uuid == "MIG-16" && partition.identity.number == 6);
  cr_assert(m.devices()[partition.parent].label == "gpu1");
  cr_assert(partition.identity.bdf == find(m, "gpu1")->identity.bdf);
  cr_assert_not(has_gap(m, "gpu1-mig6", "PCIe"));
  cr_assert(find(m, "gpu1-mig5") == nullptr);
  const Paths paths(m, Paths::View::physical);
  // NVIDIA allows them no peer-to-peer access: through the host, to other GPUs and to siblings.
  for (const char* other : {"gpu0", "gpu1-mig0"})
    cr_assert(paths.between(index_of(m, other), index_of(m, "gpu1-mig6")).type >= PathClass::phb);
  cr_assert(paths.between(index_of(m, "gpu0"), index_of(m, "gpu1")).type == PathClass::nvl);
}

Test(nvml, gpus_without_an_address_stay_apart_by_their_uuids) {
  Nvml n = fake::nvml();
  n.pci_info = [](NvmlDevice, NvmlPciInfo* info) {
    return fake::nvml_address(info, 0, 0), kNvmlSuccess;
  };
  Builder builder("here", "test");
  probe::see_nvidia_gpus(builder, n);
  const Machine m = built(std::move(builder));
  cr_assert(m.count(DeviceKind::gpu) == 2);
  cr_assert(find(m, "gpu0")->identity.uuid == "GPU-0" && !find(m, "gpu0")->identity.bdf);
  cr_assert(find(m, "gpu1")->identity.uuid == "GPU-1");
}

namespace {

// Two devices, of which the second does not answer.
Cuda fake_cuda() {
  Cuda cuda;
  cuda.device_count = [](int* count) { return *count = 2, kCudaSuccess; };
  cuda.device = [](CudaDevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 1 ? static_cast<CudaResult>(101) : kCudaSuccess;
  };
  cuda.pci_bus_id = [](char* text, int bytes, CudaDevice) {
    return std::snprintf(text, static_cast<size_t>(bytes), "0000:1B:01.0"), kCudaSuccess;
  };
  cuda.uuid = [](CudaUuid* uuid, CudaDevice) {
    std::fill(std::begin(uuid->bytes), std::end(uuid->bytes), 0x1f);
    return kCudaSuccess;
  };
  cuda.name = [](char* text, int bytes, CudaDevice) {
    return std::snprintf(text, static_cast<size_t>(bytes), "NVIDIA H200"), kCudaSuccess;
  };
  cuda.attribute = [](int* value, CudaAttribute attribute, CudaDevice) {
    return *value = attribute == kCudaCapabilityMajor ? 9 : 0, kCudaSuccess;
  };
  return cuda;
}

Machine look(const Cuda& cuda) {
  Builder builder("here", "test");
  probe::see_cuda_gpus(builder, cuda);
  return built(std::move(builder));
}

}  // namespace

Test(cuda, tells_gpus_where_there_is_no_nvml) {
  const Machine m = look(fake_cuda());
  const Device& gpu = *find(m, "gpu0");
  cr_assert(gpu.identity.bdf == (Bdf{0, 0x1b, 1, 0}) && gpu.compute_capability->value == 90);
  cr_assert(gpu.identity.uuid == "GPU-1f1f1f1f-1f1f-1f1f-1f1f-1f1f1f1f1f1f");
  cr_assert(has_gap(m, "CUDA device 1", "error 101"));
}

Test(cuda, an_instance_of_mig_has_a_uuid_of_its_own_kind) {
  Cuda cuda = fake_cuda();
  cuda.name = [](char* text, int bytes, CudaDevice) {
    return std::snprintf(text, static_cast<size_t>(bytes), "NVIDIA H200 MIG 1g.18gb"), kCudaSuccess;
  };
  const Machine m = look(cuda);
  cr_assert(find(m, "gpu0")->identity.uuid == "MIG-1f1f1f1f-1f1f-1f1f-1f1f-1f1f1f1f1f1f");
}
