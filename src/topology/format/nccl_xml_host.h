// SPDX-License-Identifier: Apache-2.0
// One host of a file of NCCL's topology XML.
#pragma once
#include <vector>

#include "topology/format/nccl_xml_numbers.h"
#include "topology/machine.h"

namespace crosstie {

struct NcclXmlHost {
  std::string name;
  std::vector<pugi::xml_node> cpus;
  // What is kept of that is kept with the host, which is the first then; none: another host.
  pugi::xml_node system{};
};
Result<Machine> read_nccl_xml_host(const NcclXmlHost& host, const Lines& lines,
                                   const std::string& source);

}  // namespace crosstie
