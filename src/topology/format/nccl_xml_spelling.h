// SPDX-License-Identifier: Apache-2.0
// XML in the spelling that NCCL's own parser takes (2.28.9, src/graph/xml.cc). That is no XML
// parser: one blank between attributes, double quotes, no entities, fixed sizes.
#pragma once
#include <pugixml.hpp>
#include <string>

#include "base/result.h"

namespace crosstie {

// Fails where a size is exceeded or a name cannot be told. RCCL takes any number of elements.
Result<std::string> spell_for_nccl(const pugi::xml_node& root, bool for_rccl);

}  // namespace crosstie
