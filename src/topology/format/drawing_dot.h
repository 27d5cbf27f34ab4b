// SPDX-License-Identifier: Apache-2.0
// What our drawings are written with: Graphviz's language, and one look for all of them.
#pragma once
#include <string>
#include <string_view>

#include "topology/device.h"

namespace crosstie::dot {

// Text of others within an HTML-like label; on one line.
std::string html(std::string_view text);
// Text of others as a quoted string, which Graphviz shows as it is.
std::string quoted(std::string_view text);

std::string bold(std::string_view text);
std::string small(std::string_view text);

struct Colour {
  std::string_view fill;
  std::string_view ink;  // of text on it
};
Colour rail_colour(uint32_t rail);
// Of cables and boxes of a rail, as an attribute: empty for those that have a colour of their own.
std::string_view rail_dashes(uint32_t rail);
// A cell of a table, in the rail's colour and with its number.
std::string rail_cell(uint32_t rail, std::string_view attributes);

// "400 Gb/s", as network devices are sold.
std::string line_rate_text(const Device& port);

class Writer {
 public:
  void open(std::string_view header);
  void close();
  void line(std::string_view text);
  void box(std::string_view id, std::string_view label, std::string_view fill,
           std::string_view more = {});
  void table(std::string_view id, std::string_view rows, std::string_view fill,
             std::string_view more = {});

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace crosstie::dot
