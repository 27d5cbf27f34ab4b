// SPDX-License-Identifier: Apache-2.0
// What GPUs are: as their PCI ids tell, and what of their links follows from that.
#include "topology/gpu_kinds.h"

#include <criterion/criterion.h>

#include "nccl_xml_texts.h"

using namespace crosstie;
using namespace crosstie::test;

Test(gpu_kinds, all_that_are_listed_are_known_and_none_else) {
  const GpuKinds kinds;
  struct Told {
    PciIds ids;
    int capability;
    const char* gcn;
  };
  for (const Told& told :
       {Told{{0x10de, 0x15f9}, 60, ""}, Told{{0x10de, 0x1db5}, 70, ""},
        Told{{0x10de, 0x20b0}, 80, ""}, Told{{0x10de, 0x2204}, 86, ""},
        Told{{0x10de, 0x26b9}, 89, ""}, Told{{0x10de, 0x2330}, 90, ""},
        Told{{0x10de, 0x2941}, 100, ""}, Told{{0x1002, 0x740c}, 90, "gfx90a"},
        Told{{0x1002, 0x74a1}, 94, "gfx942"}, Told{{0x1002, 0x66a1}, 90, "gfx906"}}) {
    const auto* const kind = kinds.find(told.ids);
    cr_assert(kind != nullptr, "%x", told.ids.device);
    cr_assert(kind->compute_capability == told.capability && kind->gcn == told.gcn, "%x: %d",
              told.ids.device, kind->compute_capability);
  }
  cr_assert(kinds.find({0x10de, 0x1af1}) == nullptr, "an NVSwitch");
  cr_assert(kinds.find({0x1002, 0x15f9}) == nullptr, "another maker's");
  cr_assert(kinds.find({}) == nullptr);
}

Test(gpu_kinds, what_a_gpu_is_follows_from_its_pci_ids_where_nothing_tells) {
  const auto gpu_of = [](const char* vendor, const char* device, const char* inside) {
    return system_of(cpu(
        0, fmt::format("<pci busid=\"0000:10:00.0\" class=\"0x030200\" vendor=\"{}\" device=\"{}\" "
                       "subsystem_vendor=\"0x1\" subsystem_device=\"0x1\">{}</pci>",
                       vendor, device, inside)));
  };
  const Machine p100 = read(gpu_of("0x10de", "0x15f9", "<gpu dev=\"0\"/>"));
  cr_assert(find(p100, "gpu0")->compute_capability == known(60, Provenance::assumed));
  const Machine told = read(gpu_of("0x10de", "0x15f9", "<gpu dev=\"0\" sm=\"61\"/>"));
  cr_assert(find(told, "gpu0")->compute_capability == known(61, Provenance::file));
  const Machine mi300 = read(gpu_of("0x1002", "0x74a1", "<gpu dev=\"0\"/>"));
  cr_assert(find(mi300, "gpu0")->compute_capability == known(94, Provenance::assumed));
  cr_assert_not(find(read(gpu_of("0x10de", "0xffff", "")), "gpu0")->compute_capability);
}

Test(gpu_kinds, of_amd_gpus_sm_is_a_number_of_compute_units) {
  const std::string text = system_of(cpu(
      0, pci("0000:10:00.0", "0x120000", "<gpu dev=\"0\" sm=\"228\" gcn=\"942\" arch=\"1\"/>")));
  const Machine m = read(text);
  cr_assert(find(m, "gpu0")->compute_capability == known(94, Provenance::file));
  const std::string again = written(read_all(text));
  cr_assert(again.find("sm=\"228\"") != std::string::npos);
  cr_assert(again.find("sm=\"94\"") == std::string::npos);
}

Test(gpu_kinds, xgmi_has_the_rate_that_rccl_knows_of_the_slower_gpu) {
  const auto amd = [](int n, const char* gcn) {
    return pci(fmt::format("0000:{:02x}:00.0", 0x10 + n), "0x120000",
               fmt::format("<gpu dev=\"{}\" {}><xgmi target=\"0000:{:02x}:00.0\" count=\"2\" "
                           "tclass=\"0x120000\"/></gpu>",
                           n, gcn, 0x11 - n));
  };
  for (const auto& [one, other, each] : {std::tuple("gcn=\"906\"", "gcn=\"906\"", 24),
                                         {"gcn=\"908\"", "gcn=\"908\"", 24},
                                         {"gcn=\"910\"", "gcn=\"910\"", 36},
                                         {"gcn=\"gfx90a\"", "gcn=\"gfx90a\"", 36},
                                         {"gcn=\"942\"", "gcn=\"942\"", 48},
                                         {"gcn=\"gfx942\"", "gcn=\"gfx942\"", 48},
                                         {"gcn=\"942\"", "gcn=\"906\"", 24},
                                         {"gcn=\"906\"", "gcn=\"942\"", 24},
                                         {"gcn=\"942\"", "", 24}}) {
    const Machine m = read(system_of(cpu(0, amd(0, one)) + cpu(1, amd(1, other))));
    expect(m, Paths::View::physical, "gpu0", "gpu1", PathClass::nvl, 2 * each);
    expect(m, Paths::View::nccl, "gpu0", "gpu1", PathClass::sys, 22);
    cr_assert(find_link(m, "gpu0", "gpu1")->bandwidth->from == Provenance::assumed);
    cr_assert_not(has_gap(m, "gpu0", "its generation of xgmi"));
    cr_assert(has_gap(m, "gpu1", "its generation of xgmi is not known") == !*other);
    cr_assert(difference(m, read(written(single_host(m)))).empty(), "as it was written");
  }
}

Test(gpu_kinds, every_gpu_whose_generation_of_nvlink_is_not_known_has_a_gap) {
  const auto m = read(system_of(cpu(0, gpu(0, nvlink(1, 4), 0) + gpu(1, nvlink(0, 4), 0))));
  for (const char* gpu : {"gpu0", "gpu1"})
    cr_assert(has_gap(m, gpu, "its generation of NVLink is not known"));
}
