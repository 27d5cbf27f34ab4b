// SPDX-License-Identifier: Apache-2.0
#include "topology/xml.h"

#include <algorithm>

#include "base/text.h"

namespace crosstie {
namespace {

// The parser stops at the last character, or in a tag that is never closed.
bool ends_early(std::string_view text, size_t stopped_at) {
  const std::string_view rest = trim(text.substr(stopped_at));
  return rest.size() < 2 || rest.back() != '>';
}

}  // namespace

Status load_xml(std::string_view text, pugi::xml_document& document) {
  const auto parsed = document.load_buffer(text.data(), text.size());
  if (parsed) return {};
  // In the text as UTF-8, which that of another encoding may be shorter than.
  const size_t at = std::min(static_cast<size_t>(parsed.offset), text.size());
  return fail(Code::invalid, "line {}: {}{}", 1 + std::ranges::count(text.substr(0, at), '\n'),
              parsed.description(), ends_early(text, at) ? "; the file may be cut short" : "");
}

}  // namespace crosstie
