// SPDX-License-Identifier: Apache-2.0
#include "cost/profile.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

std::string error_of(std::string_view toml) {
  const auto profile = read_profile(toml);
  return profile ? "" : profile.error().text;
}

void expect_error(const std::string& toml, const std::string& expected) {
  const std::string error = error_of(toml);
  cr_expect(error == expected, "%s", error.c_str());
}

}  // namespace

Test(profile, comes_back_from_a_file_as_it_was) {
  Profile profile = Profile::expected();
  profile.name = "mine", profile.source = "a \"log\"";
  profile.values[Parameter::ll_step] = 1.25;
  profile.system = SystemFacts{.compute_capability = 90,
                               .cpu = CpuVendor::amd,
                               .gpu_link = GpuLink::nvlink4,
                               .gpu_wire = gigabytes(450),
                               .multicast = true,
                               .gpus = 8,
                               .nics = 4,
                               .nic_wire = gigabits(400),
                               .network = Network::roce,
                               .nics_behind_cpu = true};
  const auto again = read_profile(write_profile(profile));
  cr_assert(again, "%s", again.error().text.c_str());
  cr_expect_str_eq(again->name.c_str(), "mine");
  cr_expect_str_eq(again->source.c_str(), "a \"log\"");
  cr_expect_eq(again->values[Parameter::ll_step], 1.25);
  cr_expect(write_profile(*again) == write_profile(profile));
}

Test(profile, parameters_that_it_does_not_name_stay_as_expected) {
  const auto profile = read_profile(
      "schema = 1\nname = \"n\"\nsource = \"s\"\n[parameters.ll_step]\nvalue = 2.0\nlow = 1.0\n"
      "high = 3.0\n");
  cr_assert(profile);
  cr_expect_eq(profile->values[Parameter::ll_step], 2.0);
  cr_expect_eq(profile->values[Parameter::launch], row_of(Parameter::launch).expected);
  // Of what it names without a source of its own the profile's is the source.
  cr_expect(profile->sources[static_cast<size_t>(Parameter::ll_step)].empty());
  cr_expect(profile->sources[static_cast<size_t>(Parameter::launch)] ==
            row_of(Parameter::launch).source);
}

Test(profile, one_line_says_what_is_wrong_and_where) {
  const std::string head = "schema = 1\nname = \"n\"\nsource = \"s\"\n";
  expect_error("schema = 7\nname = \"n\"\nsource = \"s\"\n[parameters]\n",
               "line 1: the schema is 7; this release reads schema 1");
  expect_error(head, "line 1: 'parameters' is needed, a table");
  const std::string system = head + "[parameters]\n[system]\n";
  expect_error(system + "gpu = 8\n",
               "line 6: a system has no key 'gpu'; it has compute_capability, gpu_link, "
               "gpu_gigabytes, gpus, multicast, cpu, network, nics, nic_gigabits, nics_behind_cpu");
  expect_error(system + "compute_capability = 90\ngpu_link = \"nvlink9\"\n",
               "line 7: 'gpu_link' must be one of nvlink2, nvlink3, nvlink4, nvlink5, pcie, xgmi, "
               "xgmi_partitions");
  expect_error(head + "[parameters.step]\n", "line 4: no parameter is named 'step'");
  expect_error(head + "[parameters.ll_share]\nvalue = 0.9\nlow = 0.1\nhigh = 0.5\n",
               "line 5: 'value' of ll_share must be from 4.5e-05 to 0.5 share");
  expect_error(head + "[parameters.ll_step]\nvalue = 1e300\nlow = 1.0\nhigh = 2.0\n",
               "line 5: 'value' of ll_step must be from 7e-05 to 7000 us");
  expect_error(head + "[parameters.ll_step]\nvalue = 3.0\nlow = 1.0\nhigh = 2.0\n",
               "line 4: 'value' of ll_step must lie between its 'low' and 'high'");
  expect_error(head + "[parameters]\n", "line 4: 'parameters' names none of the model's");
  cr_expect(error_of("not toml").starts_with("line 1: "));
}

Test(profile, every_profile_that_is_built_in_can_be_read) {
  cr_assert_gt(known_profiles().size(), 0);
  for (const EmbeddedToml& known : known_profiles()) {
    const auto profile = read_profile(known.toml);
    cr_assert(profile, "%s: %s", known.name.data(), profile.error().text.c_str());
    cr_expect_str_eq(profile->name.c_str(), known.name.data());
  }
}
