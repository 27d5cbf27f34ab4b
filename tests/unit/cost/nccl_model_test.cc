// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/model.h"

#include <criterion/criterion.h>

#include "layouts.h"

using namespace crosstie;
using namespace crosstie::test;
using enum Algorithm;
using enum Protocol;
using enum Collective;

namespace {

// As NCCL told them: microseconds and GB/s.
struct Golden {
  Collective collective;
  Algorithm algorithm;
  Protocol protocol;
  double latency, bandwidth;
  std::array<double, 5> times{};  // at kSizes; of AllReduce alone
};
constexpr uint64_t kSizes[] = {1 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30};

// `unit` is half of the last digit told; NCCL computes with 24 bits.
void expect_near(double ours, double golden, double unit, const Golden& row) {
  cr_expect_float_eq(
      ours, golden, unit + 2e-7 * golden, "%s: %f, not %f",
      fmt::format("{} {} {}", name(row.collective), name(row.algorithm), name(row.protocol))
          .c_str(),
      ours, golden);
}

void expect(const NcclModel& model, std::initializer_list<Golden> rows) {
  for (const Golden& row : rows) {
    const NcclModel::Cost& cost = model.cost(row.collective, row.algorithm, row.protocol);
    cr_expect(cost.why_not.empty());
    expect_near(cost.latency.count() * 1e6, row.latency, 5e-4, row);
    expect_near(cost.bandwidth.bytes_per_second / 1e9, row.bandwidth, 5e-5, row);
    for (size_t i = 0; i < row.times.size() && row.times[0] > 0; i++) {
      const auto time = model.time({row.collective, kSizes[i]}, row.algorithm, row.protocol);
      cr_assert(time.has_value());
      expect_near(time->count() * 1e6, row.times[i], 5e-3, row);
    }
  }
}

bool allows(const NcclModel& model, Collective collective, Algorithm algorithm,
            Protocol protocol = simple) {
  return model.cost(collective, algorithm, protocol).why_not.empty();
}

}  // namespace

Test(nccl_model, tells_what_nccl_tells_of_one_hopper_node) {
  expect(model_of(layout_h(1)),
         {{all_reduce, tree, ll, 15.2, 43.5789, {15.23, 17.71, 63.32, 1555.14, 24654.20}},
          {all_reduce, tree, ll128, 31.5, 128.8, {31.51, 32.35, 45.07, 610.42, 8368.00}},
          {all_reduce, tree, simple, 64.4, 165.6, {64.41, 65.06, 77.06, 570.96, 6548.35}},
          {all_reduce, ring, ll, 15.0, 80.5714, {15.01, 15.81, 28.01, 847.91, 13341.58}},
          {all_reduce, ring, ll128, 40.6, 189.2572, {40.61, 40.95, 46.14, 395.19, 5714.05}},
          {all_reduce, ring, simple, 56.0, 205.7143, {56.00, 56.32, 61.10, 382.22, 5275.58}},
          {all_reduce, nvls, simple, 25.0, 272.0, {25.00, 25.24, 28.86, 271.72, 3972.58}},
          {all_gather, ring, ll, 10.8, 161.1429},
          {all_gather, ring, ll128, 27.3, 378.5143},
          {all_gather, ring, simple, 32.2, 411.4286},
          {all_gather, nvls, simple, 25.0, 208.25},
          {broadcast, ring, ll, 7.2, 141.0},
          {broadcast, ring, ll128, 15.9, 331.2},
          {broadcast, ring, simple, 11.8, 360.0}});
}

Test(nccl_model, tells_what_nccl_tells_of_four_hopper_nodes) {
  expect(
      model_of(layout_h(4)),
      {{all_reduce, tree, ll, 35.2, 8.67, {35.33, 47.80, 277.09, 7775.55, 123880.86}},
       {all_reduce, tree, ll128, 65.5, 98.6, {65.51, 66.61, 83.22, 821.74, 10955.38}},
       {all_reduce, tree, simple, 120.4, 122.4, {120.41, 121.29, 137.53, 805.74, 8892.80}},
       {all_reduce, ring, ll, 78.8, 10.529, {78.90, 85.02, 178.39, 6452.50, 102057.95}},
       {all_reduce, ring, ll128, 144.4, 151.5355, {144.41, 144.83, 151.32, 587.26, 7230.15}},
       {all_reduce, ring, simple, 282.8, 198.1935, {282.81, 396.25, 401.21, 734.52, 5813.56}},
       {all_reduce, nvls_tree, simple, 108.6, 187.871, {108.61, 108.95, 114.18, 465.81, 5823.92}},
       {all_gather, ring, ll, 42.7, 21.0581},
       {all_gather, ring, ll128, 79.2, 303.071},
       {all_gather, ring, simple, 145.6, 396.3871},
       {broadcast, ring, ll, 93.0, 20.4},
       {broadcast, ring, ll128, 142.0, 293.6},
       {broadcast, ring, simple, 456.4, 384.0}});
}

Test(nccl_model, tells_what_nccl_tells_of_ampere_nodes) {
  expect(model_of(layout_a(1)),
         {{all_reduce, ring, simple, 56.0, 137.1429}, {all_reduce, tree, simple, 64.4, 110.4}});
  expect(model_of(layout_a(2)), {{all_reduce, tree, ll, 25.2, 11.25},
                                 {all_reduce, tree, ll128, 48.5, 80.0},
                                 {all_reduce, tree, simple, 92.4, 94.4},
                                 {all_reduce, ring, ll, 68.0, 12.0},
                                 {all_reduce, ring, ll128, 78.0, 85.3333},
                                 {all_reduce, ring, simple, 204.4, 102.4}});
  expect(model_of(layout_a(4)), {{all_reduce, tree, ll, 35.2, 9.5},
                                 {all_reduce, tree, ll128, 65.5, 66.75},
                                 {all_reduce, tree, simple, 120.4, 71.2},
                                 {all_reduce, ring, ll, 134.8, 9.8065},
                                 {all_reduce, ring, ll128, 150.0, 82.5806},
                                 {all_reduce, ring, simple, 428.4, 99.0968}});
}

Test(nccl_model, picks_the_least_time) {
  const NcclModel model = model_of(layout_h(4));
  const auto picks = [&](uint64_t bytes) {
    const auto pick = model.pick({all_reduce, bytes});
    return std::pair(pick->algorithm, pick->protocol);
  };
  cr_expect(picks(1 << 10) == std::pair(tree, ll));
  cr_expect(picks(1 << 20) == std::pair(tree, ll128));
  cr_expect(picks(64 << 20) == std::pair(nvls_tree, simple));
  cr_expect(picks(1 << 30) == std::pair(ring, simple));
}

Test(nccl_model, says_why_a_pair_is_not_allowed) {
  const NcclModel one = model_of(layout_h(1)), four = model_of(layout_h(4)),
                  ampere = model_of(layout_a(2));
  cr_expect(!allows(one, all_reduce, nvls_tree) && allows(four, all_reduce, nvls_tree));
  cr_expect(allows(one, all_gather, nvls) && !allows(four, all_gather, nvls));
  cr_expect(!allows(four, all_reduce, nvls) && !allows(ampere, all_reduce, nvls_tree));
  cr_expect(!allows(one, all_gather, tree) && !allows(one, broadcast, nvls));
  cr_expect(!allows(one, all_reduce, nvls, ll) && !allows(one, all_reduce, collnet_direct));
  cr_expect(!allows(one, all_reduce, pat) && !allows(four, all_gather, pat));
  cr_expect(!four.time({all_gather, 1 << 20}, pat, simple).has_value());
  cr_expect(four.cost(all_gather, pat, simple).why_not == "PAT is for one rank per node");
}

Test(nccl_model, picks_nothing_for_a_single_rank) {
  NcclJob job = layout_h(1);
  job.ranks = job.most_ranks_per_node = job.fewest_ranks_per_node = 1;
  cr_expect(!model_of(job).pick({all_reduce, 1 << 20}).has_value());
}

Test(nccl_model, has_pat_for_one_rank_a_node) {
  NcclJob job = layout_h(4);
  job.ranks = 4;
  job.most_ranks_per_node = job.fewest_ranks_per_node = 1;
  const NcclModel model = model_of(job);
  cr_expect(allows(model, all_gather, pat) && allows(model, reduce_scatter, pat));
  cr_expect(!allows(model, all_gather, pat, ll));
  // 8 + log2(4) * 14 / 3.5 + 4 * 2.8; 8 channels of 48 at three quarters.
  expect(model, {{all_gather, pat, simple, 27.2, 288.0}});
}

Test(nccl_model, allows_ll128_only_where_paths_keep_stores_whole) {
  NcclJob job = layout_a(2);
  job.graphs.ring.type_inter = PathClass::pxn;
  cr_expect(!allows(model_of(job), all_reduce, ring, ll128));
  job.min_compute_capability = job.max_compute_capability = 90;
  cr_expect(allows(model_of(job), all_reduce, ring, ll128));
  job.graphs.ring.type_intra = PathClass::phb;
  cr_expect(!allows(model_of(job), all_reduce, ring, ll128));
}

Test(nccl_model, allows_ll128_among_several_capabilities_from_2_30_on) {
  NcclJob job = layout_h(2);
  job.max_compute_capability = 100;
  cr_expect(!allows(model_of(job), all_reduce, ring, ll128));
  cr_expect(allows(model_of(job, {2, 30, 3}), all_reduce, ring, ll128));
}

Test(nccl_model, reads_the_cpus_of_several_nodes) {
  NcclJob job = layout_h(4);
  job.cpu = NcclCpu::amd;
  const NcclModel amd = model_of(job);
  // Ring LL: 19.0 in all, not 20.4; a step costs 2 us to post, not 1.
  expect(amd, {{all_reduce, ring, ll, 134.8, 9.8065}});
}

Test(nccl_model, collnet_needs_a_network_that_reduces) {
  NcclJob job = layout_h(4);
  job.collnet = job.collnet_gathers = true;
  job.collnet_heads = 8;
  job.graphs.collnet_chain = job.graphs.collnet_direct = graph(NcclPattern::tree, 8, 48, 48);
  const NcclModel model = model_of(job);
  // f = 8 / 8: no GPUs share a NIC; 0.85 from Hopper on, half for both ways.
  expect(model, {{all_reduce, collnet_direct, simple, 2 * (3.7 + 7 * 0.4) + 31, 163.2},
                 {all_reduce, collnet_chain, simple, 2 * 7 * 2.8 + 30, 192.0},
                 {all_gather, collnet_direct, simple, 2 * (3.7 + 7 * 0.4) + 31, 8 * 43.2}});
  cr_expect(allows(model, all_reduce, nvls) && allows(model, all_gather, nvls));
  job.collnet_heads = 4;
  cr_expect(!allows(model_of(job), all_gather, nvls));
  cr_expect(allows(model_of(job), all_reduce, nvls));
}

Test(nccl_model, operations_of_a_group_share_latencies_but_in_rings) {
  const NcclModel model = model_of(layout_h(1));
  const auto latencies = [&](Algorithm algorithm, uint32_t operations) {
    const double one = model.time({all_reduce, 64}, algorithm, ll)->count();
    return model.time({all_reduce, 64, operations}, algorithm, ll)->count() / one;
  };
  cr_expect_float_eq(latencies(ring, 12), 12, 0.01);
  cr_expect_float_eq(latencies(tree, 10), 1, 0.01);
  cr_expect_float_eq(latencies(tree, 11), 2, 0.01);
}

Test(nccl_model, corrects_nvls_tree_on_blackwell_from_2_29_2_on) {
  NcclJob job = layout_h(4);
  job.min_compute_capability = job.max_compute_capability = 100;
  const auto transfer = [&](NcclVersion version) {
    const NcclModel model = model_of(job, version);
    const NcclModel::Cost& cost = model.cost(all_reduce, nvls_tree, simple);
    return (*model.time({all_reduce, 1 << 20}, nvls_tree, simple) - cost.latency).count() *
           cost.bandwidth.bytes_per_second;
  };
  cr_expect_float_eq(transfer({2, 28, 9}), 1 << 20, 1);
  cr_expect_float_eq(transfer({2, 29, 2}), (1 << 20) / 0.5, 1);
}
