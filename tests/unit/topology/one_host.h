// SPDX-License-Identifier: Apache-2.0
// For tests of NCCL files that describe one host.
#pragma once
#include "machines.h"
#include "topology/format/formats.h"

namespace crosstie::test {

inline Result<Machine> read_host(std::string_view nccl_xml) {
  const auto topology = read_nccl_xml(nccl_xml, "test");
  if (!topology) return pass(topology);
  return *topology->hosts[0].machine;
}

}  // namespace crosstie::test
