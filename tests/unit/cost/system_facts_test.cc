// SPDX-License-Identifier: Apache-2.0
// Facts of systems, as the model of our own reads them.
#include "cost/system_facts.h"

#include <criterion/criterion.h>

#include <cmath>

#include "cost/known_systems.h"
#include "topology/format/formats.h"
#include "topology/variation.h"

using namespace crosstie;

namespace {

SystemFacts known(const char* name) { return *facts_of(*read_synthetic(name)->hosts[0].machine); }

SystemFacts xml(const std::string& body) {
  const auto read = read_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" "
      "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">" +
          body + "</cpu></system>",
      "test");
  cr_assert(read.has_value(), "%s", read ? "" : read.error().text.c_str());
  return *facts_of(*read->hosts[0].machine);
}

std::string gpu(int n, int capability, const std::string& links) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\"><gpu dev=\"{}\" "
      "sm=\"{}\">{}</gpu></pci>",
      0x10 + n, n, capability, links);
}
std::string to_switch(int count) {
  return fmt::format("<nvlink target=\"0000:80:00.0\" count=\"{}\" tclass=\"0x068000\"/>", count);
}
std::string nic(const char* vendor, const char* name) {
  return fmt::format(
      "<pci busid=\"0000:40:00.0\" class=\"0x020000\" vendor=\"{}\" device=\"0x0501\" "
      "subsystem_vendor=\"0x1\" subsystem_device=\"0x1\"><nic><net name=\"{}\" "
      "speed=\"200000\" port=\"1\"/></nic></pci>",
      vendor, name);
}

}  // namespace

Test(system_facts, known_systems_have_what_their_makers_say) {
  struct Told {
    const char* machine;
    GpuLink link;
    double gigabytes;
    Network network;
    uint32_t nics;
    bool multicast, behind_cpu;
  };
  for (const Told& told :
       {Told{"dgx-v100", GpuLink::nvlink2, 150, Network::infiniband, 4, false, false},
        Told{"dgx-a100", GpuLink::nvlink3, 300, Network::infiniband, 8, false, false},
        Told{"dgx-h100", GpuLink::nvlink4, 450, Network::infiniband, 8, true, false},
        Told{"gh200x4-slingshot", GpuLink::nvlink4, 450, Network::slingshot, 4, false, false},
        Told{"a100x4-slingshot", GpuLink::nvlink3, 300, Network::slingshot, 2, false, true},
        Told{"mi300x8", GpuLink::xgmi, 448, Network::infiniband, 8, false, false},
        Told{"pcie-3090x8", GpuLink::pcie, 31.5, Network::infiniband, 1, false, true}}) {
    const SystemFacts facts = known(told.machine);
    cr_expect(facts.gpu_link == told.link, "%s", told.machine);
    cr_expect(std::abs(facts.gpu_wire.bytes_per_second / 1e9 - told.gigabytes) < 0.1, "%s",
              told.machine);
    cr_expect(facts.network == told.network, "%s", told.machine);
    cr_expect(facts.nics == told.nics, "%s: %u NICs", told.machine, facts.nics);
    cr_expect(facts.multicast == told.multicast, "%s", told.machine);
    cr_expect(facts.nics_behind_cpu == told.behind_cpu, "%s", told.machine);
  }
}

Test(system_facts, a_known_system_may_be_varied_where_it_is_named) {
  const auto facts = facts_of_known("dgx-h100:nics=4x200G,network=roce");
  cr_assert(facts && facts->nics == 4 && facts->nic_wire == gigabits(200));
  cr_assert(facts->network == Network::roce && facts->gpus == 8);
  for (const char* text : {"dgx-h101", "dgx-h100:nics=many", "pcie-4090x8:nvlinks=4"}) {
    const auto failed = facts_of_known(text);
    cr_assert(!failed && !failed.error().text.empty(), "%s", text);
  }
}

Test(system_facts, ports_that_serve_one_gpu_together_count_as_one_nic) {
  struct Told {
    const char* nics;
    double gigabytes;
  };
  for (const Told& told : {Told{"nics=32x100G", 50}, Told{"nics=16x180G", 45}}) {
    const auto varied = vary(*read_synthetic("dgx-h100"), *parse_variation(told.nics));
    const SystemFacts facts = *facts_of(*varied->hosts[0].machine);
    cr_expect(facts.nics == 8, "%s: %u NICs", told.nics, facts.nics);
    cr_expect(std::abs(facts.nic_wire.bytes_per_second / 1e9 - told.gigabytes) < 0.1, "%s",
              told.nics);
  }
}

Test(system_facts, switches_reduce_for_all_gpus_or_for_none) {
  const std::string good = gpu(0, 90, to_switch(18)), old = gpu(1, 80, to_switch(12)),
                    lone = gpu(2, 90, ""), last = gpu(3, 90, to_switch(18));
  cr_assert(xml(good + last).multicast);
  cr_assert_not(xml(good + old + last).multicast, "one GPU is of before NVLS");
  cr_assert_not(xml(lone + good + last).multicast, "one GPU has lost its links");
  cr_assert_not(xml(good).multicast, "one GPU alone has nothing to reduce with");
}

Test(system_facts, networks_are_told_by_the_makers_of_nics_or_by_names) {
  const std::string gpus = gpu(0, 90, to_switch(18));
  cr_assert(xml(gpus + nic("0x1d0f", "rdmap79s0")).network == Network::efa);
  cr_assert(xml(gpus + nic("0x17db", "hsn0")).network == Network::slingshot);
  cr_assert(xml(gpus + nic("0x0", "cxi0")).network == Network::slingshot);
  cr_assert(xml(gpus + nic("0x0", "efa_0")).network == Network::efa);
  cr_assert(xml(gpus + nic("0x15b3", "mlx5_0")).network == Network::infiniband);
}
