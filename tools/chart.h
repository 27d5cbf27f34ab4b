// SPDX-License-Identifier: Apache-2.0
// A chart on two logarithmic axes as a picture, by Cairo.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/format/drawing.h"

namespace crosstie::tools {

struct Colour {
  double red = 0, green = 0, blue = 0, alpha = 1;
};

struct Chart {
  struct Tick {
    double at = 0;
    std::string text{};  // empty: a fine line alone
  };
  struct Axis {
    std::string label{};
    double low = 1, high = 10;  // above 0
    std::vector<Tick> ticks{};
  };
  struct Point {
    double x = 0, y = 0;
  };
  // Drawn in this order, named in the legend unless the name is empty.
  struct Line {
    std::string name{};
    Colour colour{};
    double width = 1.5;
    std::vector<double> dashes{};  // lengths on and off; none: solid
    std::vector<Point> points{};
    bool rings = false;           // at its points, in place of a line
    bool shades_beneath = false;  // down to the axis
  };
  // A part of the x axis, shaded, from a line at its begin on.
  struct Band {
    double from = 0, to = 0;
    Colour colour{};
    std::string text{};   // along its top
    std::string begin{};  // at the line; empty: no line
  };

  std::string title{}, subtitle{};
  Axis x{}, y{};
  std::vector<Band> bands{};
  std::vector<Line> lines{};
};

// The whole file. Fails where Cairo is not built in.
Result<std::string> draw(const Chart& chart, Picture picture);

}  // namespace crosstie::tools
