// SPDX-License-Identifier: Apache-2.0
// Machines whose graphs and costs were taken from NCCL 2.28.9's own code, run without a GPU. H: 8
// Hopper GPUs on NVSwitches, each with a 400 Gb/s NIC of its own, Intel. A: 8 Ampere GPUs, two of
// them and two 200 Gb/s NICs behind each of four switches, AMD.
#pragma once
#include "cost/nccl/model.h"

namespace crosstie::test {

inline NcclGraph graph(NcclPattern pattern, uint32_t channels, double intra, double inter,
                       PathClass across = PathClass::pix, bool same = false) {
  return {pattern, channels, gigabytes(intra), gigabytes(inter), PathClass::nvl, across, same};
}

inline NcclJob job(uint32_t nodes, uint32_t capability, NcclCpu cpu, uint32_t channels) {
  NcclJob job;
  job.nodes = nodes;
  job.ranks = 8 * nodes;
  job.most_ranks_per_node = job.fewest_ranks_per_node = 8;
  job.min_compute_capability = job.max_compute_capability = capability;
  job.cpu = cpu;
  job.nvswitch = true;
  job.channels = channels;
  return job;
}

inline NcclJob layout_h(uint32_t nodes) {
  using enum NcclPattern;
  NcclJob h = job(nodes, 90, NcclCpu::intel, nodes == 1 ? 24 : 16);
  h.nvls = true;
  if (nodes == 1) {
    h.graphs.ring = graph(ring, 12, 30, 30, PathClass::pix, true);
    h.graphs.tree = graph(balanced_tree, 12, 30, 30);
    h.graphs.nvls = graph(nvls, 8, 40, 60);
  } else {
    h.graphs.ring = graph(ring, 8, 48, 48);
    h.graphs.tree = graph(tree, 8, 48, 48);
    h.graphs.nvls = graph(nvls, 8, 40, 48);
  }
  return h;
}

inline NcclJob layout_a(uint32_t nodes) {
  using enum NcclPattern;
  NcclJob a = job(nodes, 80, NcclCpu::amd, nodes == 1 ? 24 : 16);
  if (nodes == 1) {
    a.graphs.ring = graph(ring, 12, 20, 20, PathClass::pix, true);
    a.graphs.tree = graph(balanced_tree, 12, 20, 20);
  } else {
    a.graphs.ring = graph(ring, 8, 24, 24);
    a.graphs.tree = graph(balanced_tree, 8, 30, 24);
  }
  return a;
}

inline NcclModel model_of(const NcclJob& job, NcclVersion version = {2, 28, 9}) {
  return {find_nccl_release(version).value().release, job};
}

}  // namespace crosstie::test
