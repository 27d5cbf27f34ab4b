// SPDX-License-Identifier: Apache-2.0
#include "topology/format/nccl_xml_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/printable.h"

namespace crosstie {
namespace {

constexpr Bounds kFlag{-1, 1};  // NCCL takes -1 for not known

}  // namespace

Lines::Lines(std::string_view text) {
  for (size_t i = 0; i < text.size(); i++)
    if (text[i] == '\n') ends_.push_back(static_cast<ptrdiff_t>(i));
}

ptrdiff_t Lines::of(const pugi::xml_node& node) const {
  return 1 + (std::ranges::lower_bound(ends_, node.offset_debug()) - ends_.begin());
}

std::optional<double> NcclXmlNumbers::number(const pugi::xml_node& node, const char* attribute,
                                             Bounds bounds) {
  const std::string_view text = node.attribute(attribute).value();
  if (tells_nothing(text)) {
    if (bounds.must_tell && node.attribute(attribute))
      mistake(node, attribute, "is no number; NCCL takes it for 0");
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ends = end == text.data() + text.size() || (bounds.has_unit && *end == ' ');
  if (error == std::errc::invalid_argument || !ends || !(value >= bounds.least) ||
      !(value <= bounds.most) || error != std::errc()) {
    mistake(node, attribute, fmt::format("is no number from {} to {}", bounds.least, bounds.most));
    return std::nullopt;
  }
  return value;
}

int NcclXmlNumbers::whole(const pugi::xml_node& node, const char* attribute, Bounds bounds,
                          int otherwise) {
  const auto value = number(node, attribute, bounds);
  if (value && *value != std::floor(*value)) mistake(node, attribute, "is no whole number");
  return value ? static_cast<int>(*value) : otherwise;
}

uint64_t NcclXmlNumbers::code(const pugi::xml_node& node, const char* attribute, int bits) {
  std::string_view text = node.attribute(attribute).value();
  if (tells_nothing(text)) return 0;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || (bits < 64 && value >> bits != 0))
    mistake(node, attribute, fmt::format("is no hexadecimal number of {} bits", bits));
  return value;
}

// Of an odd number of digits a zero before them was lost.
std::optional<uint32_t> parse_class(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || value >> 24 != 0)
    return std::nullopt;
  return text.size() == 2 || text.size() == 4 ? value << (24 - 4 * text.size()) : value;
}

std::string class_text(uint32_t code) { return fmt::format("{:#08x}", code); }

uint64_t NcclXmlNumbers::class_code(const pugi::xml_node& node, const char* attribute) {
  const std::string_view text = node.attribute(attribute).value();
  if (tells_nothing(text)) return 0;
  const auto code = parse_class(text);
  if (!code) mistake(node, attribute, "is no hexadecimal number of 24 bits");
  return code.value_or(0);
}

Property<bool> NcclXmlNumbers::flag(const pugi::xml_node& node, const char* attribute) {
  const int value = whole(node, attribute, kFlag, -1);
  return value < 0 ? Property<bool>{} : known(value == 1, Provenance::file);
}

void NcclXmlNumbers::mistake(const pugi::xml_node& node, const char* attribute,
                             std::string_view what) {
  if (status_)
    status_ = fail(Code::invalid, "line {}: <{}>: {}=\"{}\" {}", lines_.of(node), node.name(),
                   attribute, printable(node.attribute(attribute).value()), what);
}

}  // namespace crosstie
