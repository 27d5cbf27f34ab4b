// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "layouts.h"

using namespace crosstie;
using namespace crosstie::test;
using enum Algorithm;
using enum Protocol;
using enum Collective;

namespace {

uint32_t channels(const NcclModel& model, uint64_t bytes, Algorithm algorithm, Protocol protocol) {
  return model.launch({all_reduce, bytes}, algorithm, protocol)->channels;
}

}  // namespace

Test(nccl_launch, has_more_channels_the_more_there_is_to_do) {
  const NcclModel model = model_of(layout_h(1));
  cr_expect_eq(channels(model, 1 << 10, ring, simple), 1);
  cr_expect_eq(channels(model, 256 << 10, ring, simple), 8);  // of 512 threads * 64 bytes each
  cr_expect_eq(channels(model, 1 << 30, ring, simple), 24);
}

Test(nccl_launch, nvls_has_its_own_channels) {
  const NcclModel model = model_of(layout_h(1));
  cr_expect_eq(model.nvls_channels(), 16);
  cr_expect_eq(channels(model, 1 << 30, nvls, simple), 16);
}

Test(nccl_launch, blackwell_has_nvls_channels_by_its_network_from_2_30_3_on) {
  NcclJob job = layout_h(4);
  job.min_compute_capability = job.max_compute_capability = 100;
  job.slowest_port = gigabits(400);
  cr_expect_eq(model_of(job).nvls_channels(), 32);
  cr_expect_eq(model_of(job, {2, 30, 3}).nvls_channels(), 24);
  job.nodes = 2;
  cr_expect_eq(model_of(job, {2, 30, 3}).nvls_channels(), 32);
  job.nodes = 1;
  cr_expect_eq(model_of(job, {2, 30, 3}).nvls_channels(), 24);
}

Test(nccl_launch, has_fewer_threads_where_one_channel_is_too_many) {
  const NcclModel model = model_of(layout_h(1));
  cr_expect_eq(model.launch({all_reduce, 64}, ring, simple)->threads, 96);
  cr_expect_eq(model.launch({all_reduce, 64}, tree, simple)->threads, 640);
  cr_expect_eq(model.launch({all_reduce, 1 << 30}, ring, simple)->threads, 544);
}
