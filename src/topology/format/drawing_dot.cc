// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing_dot.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "topology/format/mark.h"

namespace crosstie::dot {
namespace {

// Paul Tol's scheme "muted": told apart by people with any kind of colour blindness, on white too.
// Beyond nine rails the colours come again, with dashes; beyond 27 the number alone tells which.
constexpr std::array<Colour, 9> kRailColours = {{{"#332288", "white"},
                                                 {"#88ccee", "black"},
                                                 {"#117733", "white"},
                                                 {"#ddcc77", "black"},
                                                 {"#cc6677", "black"},
                                                 {"#aa4499", "white"},
                                                 {"#44aa99", "black"},
                                                 {"#882255", "white"},
                                                 {"#999933", "black"}}};

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

}  // namespace

// Graphviz puts names for \N and its like in HTML-like labels too, where no backslash is doubled: a
// space of no width keeps them apart.
std::string html(std::string_view text) {
  constexpr std::string_view kReplaced = "EGHLNT";
  std::string out;
  bool after_backslash = false;
  for (const char c : printable(text)) {
    if (after_backslash && kReplaced.find(c) != std::string_view::npos) out += "&#8203;";
    const std::string_view written = entity(c);
    written.empty() ? out += c : out += written;
    after_backslash = c == '\\';
  }
  return out;
}

// Graphviz takes a backslash for an escape and, within strings, entities for their characters.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '&')
      out += "&amp;";
    else
      (c == '"' || c == '\\') ? (out += '\\') += c : out += c;
  }
  return out + '"';
}

std::string bold(std::string_view text) { return fmt::format("<B>{}</B>", html(text)); }

std::string small(std::string_view text) {
  return fmt::format("<FONT POINT-SIZE=\"9\">{}</FONT>", html(text));
}

Colour rail_colour(uint32_t rail) { return kRailColours[rail % kRailColours.size()]; }

std::string_view rail_dashes(uint32_t rail) {
  constexpr std::array<std::string_view, 3> kDashes = {"", " style=\"dashed\"",
                                                       " style=\"dotted\""};
  return kDashes[rail / kRailColours.size() % kDashes.size()];
}

std::string rail_cell(uint32_t rail, std::string_view attributes) {
  const auto [fill, ink] = rail_colour(rail);
  return fmt::format("<TD BGCOLOR=\"{}\"{}{}><FONT COLOR=\"{}\">rail {}</FONT></TD>", fill,
                     rail_dashes(rail), attributes, ink, rail);
}

std::string line_rate_text(const Device& port) {
  if (!port.line_rate) return "? Gb/s";
  return fmt::format("{}{:.4g} Gb/s", mark(*port.line_rate),
                     port.line_rate->value.bytes_per_second * 8 / 1e9);
}

void Writer::open(std::string_view header) {
  line(fmt::format("{} {{", header));
  depth_++;
}

void Writer::close() {
  depth_--;
  line("}");
}

void Writer::line(std::string_view text) {
  text_ += fmt::format("{:{}}{}\n", "", 2 * depth_, text);
}

void Writer::box(std::string_view id, std::string_view label, std::string_view fill,
                 std::string_view more) {
  line(fmt::format("{} [label=<{}> fillcolor=\"{}\"{}]", id, label, fill, more));
}

void Writer::table(std::string_view id, std::string_view rows, std::string_view fill,
                   std::string_view more) {
  line(
      fmt::format("{} [shape=plain style=\"\" label=<<TABLE BORDER=\"0\" CELLBORDER=\"1\" "
                  "CELLSPACING=\"0\" CELLPADDING=\"4\" BGCOLOR=\"{}\">{}</TABLE>>{}]",
                  id, fill, rows, more));
}

}  // namespace crosstie::dot
