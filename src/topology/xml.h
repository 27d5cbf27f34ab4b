// SPDX-License-Identifier: Apache-2.0
// What readers of XML share.
#pragma once
#include <pugixml.hpp>

#include "base/result.h"

namespace crosstie {

// The error tells the line, and whether the text ends before its root element does.
Status load_xml(std::string_view text, pugi::xml_document& document);

}  // namespace crosstie
