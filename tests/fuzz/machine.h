// SPDX-License-Identifier: Apache-2.0
// What any reader of topologies promises: machines that keep their own promises, can be shown, and
// come back from JSON as they were; or an error.
#pragma once
#include "target.h"
#include "topology/format/formats.h"

namespace crosstie::fuzz {

inline void expect_topology_or_error(const Result<Topology>& topology) {
  if (!topology) {
    PROMISE(!topology.error().text.empty());
    return;
  }
  for (const Host& host : topology->hosts) PROMISE(validate(*host.machine).has_value());
  PROMISE(!tree_text(*topology).empty());
  const std::string json = json_text(*topology);
  const auto again = read_json(json);
  PROMISE(again && json_text(*again) == json);
  const auto xml = nccl_xml_text(*topology);
  PROMISE(xml ? read_nccl_xml(*xml, "written").has_value() : !xml.error().text.empty());
}

inline void expect_machine_or_error(Result<Machine> machine) {
  if (machine)
    expect_topology_or_error(single_host(std::move(*machine)));
  else
    expect_topology_or_error(pass(machine));
}

}  // namespace crosstie::fuzz
