// SPDX-License-Identifier: Apache-2.0
#include "topology/format/nccl_xml_spelling.h"

#include <algorithm>
#include <cctype>

#include "base/printable.h"

namespace crosstie {
namespace {

using pugi::xml_node;

// What NCCL's parser takes, as 2.28.9 was seen to: one more and it gives up, but for attributes, of
// which it drops those beyond.
constexpr size_t kMostElements = 255;
constexpr size_t kMostAttributes = 16;
constexpr size_t kMostChildren = 128;
constexpr size_t kMostText = 253;

// Walks what was written and puts it in NCCL's spelling.
class Spelling {
 public:
  Status add(const xml_node& node, int depth) {
    elements_++;
    if (const Status right = check_name(node.name()); !right) return right;
    text_ += fmt::format("{:{}}<{}", "", 2 * depth, node.name());
    if (const Status right = add_attributes(node); !right) return right;
    if (!node.first_child()) {
      text_ += "/>\n";
      return {};
    }
    text_ += ">\n";
    if (const Status right = add_children(node, depth + 1); !right) return right;
    text_ += fmt::format("{:{}}</{}>\n", "", 2 * depth, node.name());
    return {};
  }
  size_t elements() const { return elements_; }
  const std::string& text() const { return text_; }

 private:
  static Status too_many(const xml_node& node, size_t have, std::string_view what, size_t most) {
    return fail(Code::unsupported, "a <{}> has {} {}; NCCL's parser takes {} at most", node.name(),
                have, what, most);
  }

  Status add_attributes(const xml_node& node) {
    size_t count = 0;
    for (const auto& attribute : node.attributes()) {
      count++;
      if (const Status right = check_name(attribute.name()); !right) return right;
      if (const Status right = check_text(node, attribute); !right) return right;
      text_ += fmt::format(" {}=\"{}\"", attribute.name(), attribute.value());
    }
    return count > kMostAttributes ? too_many(node, count, "attributes", kMostAttributes)
                                   : Status();
  }

  static Status check_name(std::string_view name) {
    const bool plain = std::ranges::all_of(
        name, [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); });
    if (plain && name.size() <= kMostText) return {};
    return fail(Code::unsupported, "NCCL's parser does not take the name {}", printable(name));
  }

  static Status check_text(const xml_node& node, const pugi::xml_attribute& attribute) {
    const std::string_view text = attribute.value();
    const bool plain = std::ranges::all_of(text, [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '<' && c != '>' && c != '&';
    });
    if (!plain)
      return fail(Code::unsupported,
                  "<{}>: {}=\"{}\" has a character that NCCL's parser does not take; rename it",
                  node.name(), attribute.name(), printable(text));
    if (text.size() > kMostText)
      return fail(Code::unsupported, "<{}>: {} has {} characters; NCCL's parser takes {} at most",
                  node.name(), attribute.name(), text.size(), kMostText);
    return {};
  }

  Status add_children(const xml_node& node, int depth) {
    size_t count = 0;
    for (const xml_node& child : node.children()) {
      if (child.type() != pugi::node_element)
        return fail(Code::unsupported, "a <{}> holds text, which NCCL's parser does not take",
                    node.name());
      count++;
      if (const Status right = add(child, depth); !right) return right;
    }
    return count > kMostChildren ? too_many(node, count, "elements", kMostChildren) : Status();
  }

  std::string text_;
  size_t elements_ = 0;
};

}  // namespace

Result<std::string> spell_for_nccl(const xml_node& root, bool for_rccl) {
  Spelling spelling;
  if (const Status right = spelling.add(root, 0); !right) return pass(right);
  if (spelling.elements() > kMostElements && !for_rccl)
    return fail(Code::unsupported,
                "NCCL's XML of it would have {} elements; NCCL's parser takes {} of a file at most",
                spelling.elements(), kMostElements);
  return spelling.text();
}

}  // namespace crosstie
