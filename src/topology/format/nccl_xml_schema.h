// SPDX-License-Identifier: Apache-2.0
// The elements of NCCL's topology XML, as of NCCL 2.30 (src/graph/xml.cc) and RCCL: system > cpu >
// pci > gpu, nic > net; nvlink, c2c and RCCL's xgmi beneath gpu.
#pragma once
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace crosstie {

// Names between blanks.
struct NcclXmlElement {
  std::string_view name;
  std::string_view read;  // attributes that become properties
  std::string_view kept;  // attributes that we know and have no property for
  std::string_view children;
};
// Of an element that there is.
const NcclXmlElement& nccl_xml_element(std::string_view name);

bool lists(std::string_view names, std::string_view name);
// An element in its own words, on one line.
std::string xml_text(const pugi::xml_node& node);

}  // namespace crosstie
