// SPDX-License-Identifier: Apache-2.0
#include "topology/format/nccl_xml_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/printable.h"
#include "base/text.h"

namespace crosstie {
namespace {

constexpr Bounds kFlag{-1, 1};  // NCCL takes -1 for not known

struct Number {
  double value;
  std::string_view rest;  // what follows it; the whole text where it begins with no number
};

// As NCCL does.
Number whole_number(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 0);
  return {static_cast<double>(value), end};
}

Number real_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  return {value, text.substr(static_cast<size_t>(end - text.data()))};
}

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
  const bool is_real = bounds.is_real || text.find('.') != text.npos;
  const auto [value, rest] = is_real ? real_number(text) : whole_number(text.data());
  const bool is_none = rest.size() == text.size();
  if (is_none && bounds.is_words) return std::nullopt;
  const bool ends = bounds.is_words || trim(rest).empty();
  if (is_none || !ends || !(value >= bounds.least) || !(value <= bounds.most)) {
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
