// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace crosstie {
namespace {

constexpr uint32_t kNoCharacter = UINT32_MAX;

struct Character {
  uint32_t code = kNoCharacter;
  size_t bytes = 1;
};

// Bytes of the sequence that a first byte announces; 0 where it can be none.
size_t announced(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

// RFC 3629: the shortest form only, no surrogates, nothing above U+10FFFF.
bool is_scalar(uint32_t code, size_t bytes) {
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kLeast[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

// The character that begins the text; a byte that begins none stands alone.
Character first_character(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t bytes = announced(first);
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = bytes == 1 ? first : first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  return is_scalar(code, bytes) ? Character{code, bytes} : Character{};
}

// Controls (C0, DEL, C1), line and paragraph separators, and what embeds, overrides or isolates
// a direction of writing.
bool is_shown(uint32_t code) {
  if (code == kNoCharacter || code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  return !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

std::string escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  std::string out;
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  return out;
}

// Octal, because its digits end by themselves.
std::string dollar_quoted(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\')
      out += c;
    else
      out += fmt::format("\\{:03o}", static_cast<uint8_t>(c));
  }
  return out + "'";
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.code == kNoCharacter) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    is_shown(next.code) ? out += bytes : out += escaped(bytes);
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%";
  if (text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  if (printable(text) != text) return dollar_quoted(text);
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

}  // namespace crosstie
