// SPDX-License-Identifier: Apache-2.0
// NCCL's classes of paths (2.28.9, src/graph/topo.h).
#pragma once
#include "base/words.h"

namespace crosstie {

// From the nearest to the farthest, in NCCL's order and with its names: the same device; over
// NVLink; over NVLink by way of a GPU; chip to chip; through one PCIe switch; through several; C2C
// to the CPU, then PCIe; by way of a GPU that has NVLink to us and the NIC near it; through the
// CPU; between CPUs; over the network; not at all.
enum class PathClass : uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };
template <>
struct Names<PathClass> {
  static constexpr std::array<std::string_view, 12> all = {
      "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
};

}  // namespace crosstie
