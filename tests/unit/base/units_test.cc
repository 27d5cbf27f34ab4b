// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <criterion/criterion.h>

#include "base/identity.h"

using namespace crosstie;

Test(units, sizes_are_read_with_and_without_a_suffix) {
  cr_assert(*parse_bytes("8") == 8);
  cr_assert(*parse_bytes("64M") == 64u << 20);
  cr_assert(*parse_bytes("64MiB") == 64u << 20);
  cr_assert(*parse_bytes("1g") == 1u << 30);
}

Test(units, what_is_no_size_is_refused) {
  for (const char* text :
       {"", "M", "-1", "1.5M", "8 M", "8MB", "8Mib", "8iB", "99999999999999999999", "17179869184G"})
    cr_assert_not(parse_bytes(text).has_value(), "%s", text);
}

Test(units, durations_are_read_in_every_unit_and_printed_in_the_largest_exact_one) {
  cr_assert(*parse_duration("250us") == std::chrono::microseconds(250));
  cr_assert(*parse_duration("2") == std::chrono::seconds(2));
  cr_assert(*parse_duration("0.5m") == std::chrono::seconds(30));
  cr_assert(duration_text(std::chrono::milliseconds(1500)) == "1500ms");
  cr_assert(duration_text(std::chrono::seconds(30)) == "30s");
  for (const char* text : {"", "s", "-1s", "1parsec", "1e30", "999999999h", "nan", "inf"})
    cr_assert_not(parse_duration(text).has_value(), "%s", text);
}

Test(units, a_number_out_of_range_is_told_from_one_that_is_none) {
  for (const char* text : {"9999999h", "1e30", "1e999", "inf", "87601h"})
    cr_assert(parse_duration(text).error().text.find("out of range") != std::string::npos, "%s",
              text);
  cr_assert(*parse_duration("87600h") == std::chrono::hours(87600));
  cr_assert_not(parse_duration("nan").has_value());
  cr_assert(parse_bytes("99999999999999999999").error().text.find("2^64") != std::string::npos);
}

Test(units, a_size_prints_in_the_largest_exact_unit) {
  cr_assert(bytes_text(0) == "0");
  cr_assert(bytes_text(1000) == "1000");
  cr_assert(bytes_text(64u << 20) == "64M");
}

Test(identity, pci_addresses_are_read_with_and_without_a_domain) {
  cr_assert(to_text(*parse_bdf("0000:1B:00.1")) == "0000:1b:00.1");
  cr_assert(to_text(*parse_bdf("1b:00.0")) == "0000:1b:00.0");
  for (const char* text : {"", "1b", "1b:00", "1b:00.8", "1b:20.0", "zz:00.0", "0000:1b:00.0x",
                           " 1b:00.0", "-1:00.0", "0x:00.0", "1b: 0.0"})
    cr_assert_not(parse_bdf(text).has_value(), "%s", text);
}
