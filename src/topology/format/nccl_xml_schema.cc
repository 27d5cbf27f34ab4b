// SPDX-License-Identifier: Apache-2.0
#include "topology/format/nccl_xml_schema.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace crosstie {
namespace {

constexpr std::array<NcclXmlElement, 10> kElements = {{
    {"system", " version name ", " ", " cpu "},
    {"cpu", " numaid arch vendor familyid modelid ", " host_hash affinity ", " pci nic "},
    {"pci", " busid class vendor device subsystem_vendor subsystem_device link_speed link_width ",
     " keep ", " pci gpu nic pcilink "},
    {"gpu", " dev sm gdr ", " rank keep gcn arch ", " nvlink xgmi c2c "},
    {"nvlink", " target count tclass ", " ", " "},
    {"xgmi", " target count tclass ", " ", " "},
    {"c2c", " bw count ", " ", " "},
    {"nic", " ", " ", " net "},
    {"net", " name dev speed port guid latency gdr rail ", " maxconn coll keep plane ", " "},
    {"pcilink", " target ", " ", " "},
}};

}  // namespace

const NcclXmlElement& nccl_xml_element(std::string_view name) {
  return *std::ranges::find(kElements, name, &NcclXmlElement::name);
}

bool lists(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1))
    if (at > 0 && names[at - 1] == ' ' && names.substr(at + name.size()).starts_with(' '))
      return true;
  return false;
}

std::string xml_text(const pugi::xml_node& node) {
  std::ostringstream text;
  node.print(text, "", pugi::format_raw);
  return text.str();
}

}  // namespace crosstie
