// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/release.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

KnownNcclRelease of(std::string_view version) {
  const auto found = find_nccl_release(parse_nccl_version(version).value());
  cr_assert(found.has_value(), "%s", found ? "" : found.error().text.c_str());
  return *found;
}

constexpr auto kBlackwell = static_cast<size_t>(NcclGeneration::blackwell);

double ring_ll128(std::string_view version, size_t scale) {
  return of(version).release.bandwidth.ring_ll128[kBlackwell][scale].bytes_per_second / 1e9;
}

}  // namespace

Test(nccl_release, is_the_newest_that_is_not_newer) {
  cr_expect_eq(of("2.27.7").from, "2.27.3");
  cr_expect_eq(of("2.28.5").from, "2.28.3");
  cr_expect_eq(of("2.28.9-1").from, "2.28.9");
  cr_expect_eq(of("2.28").from, "2.28.9");
  cr_expect_eq(of("2.30.7").from, "2.30.3");
}

Test(nccl_release, says_where_none_is_known) {
  cr_expect_eq(of("2.27.3").note, "");
  cr_expect_eq(of("2.30.7").note, "");
  cr_expect_eq(of("2.26.2").note,
               "NCCL 2.26.2 is older than what is known of its decisions, 2.27.3 to 2.30.3: taken "
               "for 2.27.3");
  cr_expect_eq(of("2.26.2").from, "2.27.3");
  cr_expect(of("2.31.0").note.find("newer") != std::string::npos);
  cr_expect_eq(of("3.0.0").from, "2.30.3");
}

Test(nccl_release, keeps_what_later_ones_do_not_change) {
  cr_expect_float_eq(ring_ll128("2.28.3", 1), 73.4, 1e-9);
  cr_expect_float_eq(ring_ll128("2.28.9", 1), 34.6, 1e-9);
  cr_expect_float_eq(ring_ll128("2.28.9", 2), 73.4, 1e-9);
  cr_expect_float_eq(ring_ll128("2.29.2", 2), 34.5, 1e-9);
  cr_expect_float_eq(ring_ll128("2.30.3", 2), 40.0, 1e-9);
  const NcclRelease newest = of("2.30.3").release;
  cr_expect_float_eq(newest.latency.base[0][1].count(), 14e-6, 1e-12);
  cr_expect_float_eq(newest.bandwidth.nvls_tree[kBlackwell][2].bytes_per_second, 80e9, 1);
  cr_expect_eq(newest.channels.least_traffic, 32 << 10);
  cr_expect_eq(newest.nvls_channels.size(), 7);
}

Test(nccl_release, is_read_whole_from_the_oldest) {
  const NcclRelease oldest = of("2.27.3").release;
  cr_expect(!oldest.nvls.multicast);
  cr_expect_eq(oldest.ll128.across_hopper, PathClass::pxn);
  cr_expect_eq(oldest.threads.bytes_collnet, 512);
  cr_expect_float_eq(oldest.tree_correction.factor[0][12], 0.4, 1e-12);
  cr_expect_eq(oldest.nvls_channels.size(), 3);
}

Test(nccl_release, names_the_line_of_a_mistake) {
  NcclRelease release;
  const auto error = [&](std::string_view toml) {
    const Status status = read_nccl_release(toml, release);
    return status ? std::string() : status.error().text;
  };
  cr_expect_eq(error("[latency.base]\ntree = [1.0, 2.0]"), "line 2: 'tree' must hold 3 numbers");
  cr_expect(error("[ll128]\nwithin = \"NVX\"").starts_with("line 2: 'within' is no class"));
  cr_expect_eq(error("latence = 1"), "line 1: 'latence' is no constant of NCCL's");
  cr_expect_eq(error("[share]\nring = 1.0"), "line 2: 'ring' is no constant of NCCL's");
  cr_expect(error("[share]\ntree = \"much\"").starts_with("line 2"));
}

Test(nccl_release, takes_versions_as_people_write_them) {
  cr_expect((parse_nccl_version("2.28.9").value() == NcclVersion{2, 28, 9}));
  for (const char* wrong : {"", "2", "2.", "2.28.", "2.x", "2.28.9.1", "22809", "2.28 "})
    cr_expect(!parse_nccl_version(wrong).has_value(), "%s", wrong);
}
