// SPDX-License-Identifier: Apache-2.0
#include <cairo-svg.h>
#include <cairo.h>

#include <cmath>

#include "base/handle.h"
#include "chart.h"

namespace crosstie::tools {
namespace {

// Of the picture and within it, in pixels.
constexpr double kWidth = 1200, kHeight = 720;
constexpr double kLeft = 86, kRight = 264, kTop = 114, kBottom = 64;
constexpr double kText = 13, kSmall = 12, kTitle = 18, kLegendRow = 22, kLegendSample = 34,
                 kRing = 4.5;
constexpr Colour kInk{0.13, 0.13, 0.15}, kFaint{0.86, 0.87, 0.89}, kFainter{0.94, 0.945, 0.95};
constexpr double kBand = 22;  // in which the texts of bands stand, above the chart

struct SurfaceTraits {
  using type = cairo_surface_t*;
  static constexpr cairo_surface_t* none = nullptr;
  static void close(cairo_surface_t* surface) { cairo_surface_destroy(surface); }
};
using Surface = Handle<SurfaceTraits>;
struct ContextTraits {
  using type = cairo_t*;
  static constexpr cairo_t* none = nullptr;
  static void close(cairo_t* context) { cairo_destroy(context); }
};

cairo_status_t append(void* to, const unsigned char* bytes, unsigned int size) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), size);
  return CAIRO_STATUS_SUCCESS;
}

class Pen {
 public:
  Pen(const Chart& chart, cairo_surface_t* on) : chart_(chart), cairo_(cairo_create(on)) {
    cairo_select_font_face(to(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_join(to(), CAIRO_LINE_JOIN_ROUND);
  }

  cairo_status_t draw() {
    ink({1, 1, 1});
    cairo_paint(to());
    for (const Chart::Band& band : chart_.bands) draw_band(band);
    draw_axes();
    cairo_save(to());
    // Rings at either end stay whole.
    cairo_rectangle(to(), kLeft - kRing - 1, kTop, right() - kLeft + 2 * kRing + 2,
                    bottom() - kTop);
    cairo_clip(to());
    for (const Chart::Line& line : chart_.lines) draw_line(line);
    cairo_restore(to());
    for (const Chart::Band& band : chart_.bands) name_band(band);
    name_crossings();
    draw_legend();
    write(kTitle, chart_.title, kLeft, 28, 0);
    write(kText, chart_.subtitle, kLeft, 50, 0);
    return cairo_status(to());
  }

 private:
  cairo_t* to() const { return cairo_.get(); }
  static double right() { return kWidth - kRight; }
  static double bottom() { return kHeight - kBottom; }
  static double share(const Chart::Axis& axis, double at) {
    return std::log(at / axis.low) / std::log(axis.high / axis.low);
  }
  double x(double at) const { return kLeft + (right() - kLeft) * share(chart_.x, at); }
  double y(double at) const { return bottom() - (bottom() - kTop) * share(chart_.y, at); }

  void ink(const Colour& colour) const {
    cairo_set_source_rgba(to(), colour.red, colour.green, colour.blue, colour.alpha);
  }
  double width_of(double size, const std::string& text) const {
    cairo_set_font_size(to(), size);
    cairo_text_extents_t extents;
    cairo_text_extents(to(), text.c_str(), &extents);
    return extents.x_advance;
  }
  // align: 0 begins at x, 1/2 is centred on it, 1 ends there.
  void write(double size, const std::string& text, double x, double y, double align) const {
    ink(kInk);
    const double left = x - align * width_of(size, text);
    cairo_move_to(to(), left, y);
    cairo_show_text(to(), text.c_str());
  }
  void rule(double x1, double y1, double x2, double y2, const Colour& colour, double width) const {
    ink(colour);
    cairo_set_line_width(to(), width);
    cairo_move_to(to(), x1, y1);
    cairo_line_to(to(), x2, y2);
    cairo_stroke(to());
  }

  void draw_axes() const {
    for (const Chart::Tick& tick : chart_.x.ticks) {
      rule(x(tick.at), kTop, x(tick.at), bottom(), tick.text.empty() ? kFainter : kFaint, 1);
      write(kText, tick.text, x(tick.at), bottom() + 20, 0.5);
    }
    for (const Chart::Tick& tick : chart_.y.ticks) {
      rule(kLeft, y(tick.at), right(), y(tick.at), tick.text.empty() ? kFainter : kFaint, 1);
      write(kText, tick.text, kLeft - 8, y(tick.at) + 4.5, 1);
    }
    ink(kInk);
    cairo_set_line_width(to(), 1);
    cairo_rectangle(to(), kLeft, kTop, right() - kLeft, bottom() - kTop);
    cairo_stroke(to());
    write(kText, chart_.x.label, (kLeft + right()) / 2, kHeight - 18, 0.5);
    cairo_save(to());
    cairo_translate(to(), 20, (kTop + bottom()) / 2);
    cairo_rotate(to(), -M_PI / 2);
    write(kText, chart_.y.label, 0, 0, 0.5);
    cairo_restore(to());
  }

  void draw_band(const Chart::Band& band) const {
    ink(band.colour);
    cairo_rectangle(to(), x(band.from), kTop - kBand, x(band.to) - x(band.from),
                    bottom() - kTop + kBand);
    cairo_fill(to());
  }
  // Upright where there is room; what has none at all is left to the text form.
  void name_band(const Chart::Band& band) const {
    const double from = x(band.from), until = x(band.to), middle = (from + until) / 2;
    const double length = width_of(kSmall, band.text);
    if (length < until - from - 6) return write(kSmall, band.text, middle, kTop - 7, 0.5);
    if (until - from < kSmall + 3) return;
    cairo_save(to());
    cairo_translate(to(), middle + kSmall / 3, kTop + 8);
    cairo_rotate(to(), -M_PI / 2);
    write(kSmall, band.text, 0, 0, 1);
    cairo_restore(to());
  }
  // Their texts on two rows, so that one does not cover the next.
  void name_crossings() const {
    double end = 0;
    bool raised = false;
    for (const Chart::Band& band : chart_.bands) {
      if (band.begin.empty()) continue;
      const double at = x(band.from), half = width_of(kSmall, band.begin) / 2;
      cairo_set_dash(to(), kCrossing, 2, 0);
      rule(at, kTop - kBand, at, bottom(), kInk, 1);
      cairo_set_dash(to(), nullptr, 0, 0);
      raised = at - half < end + 4 && !raised;
      write(kSmall, band.begin, at, kTop - kBand - (raised ? 18 : 4), 0.5);
      end = at + half;
    }
  }

  void draw_line(const Chart::Line& line) const {
    if (line.points.empty()) return;
    style(line);
    if (line.rings) return draw_rings(line);
    for (const Chart::Point& point : line.points) cairo_line_to(to(), x(point.x), y(point.y));
    if (line.shades_beneath) {
      cairo_path_t* const path = cairo_copy_path(to());
      cairo_line_to(to(), x(line.points.back().x), bottom());
      cairo_line_to(to(), x(line.points.front().x), bottom());
      ink({line.colour.red, line.colour.green, line.colour.blue, 0.08});
      cairo_fill(to());
      cairo_append_path(to(), path);
      cairo_path_destroy(path);
      ink(line.colour);
    }
    cairo_stroke(to());
    cairo_set_dash(to(), nullptr, 0, 0);
  }
  void style(const Chart::Line& line) const {
    ink(line.colour);
    cairo_set_line_width(to(), line.width);
    cairo_set_dash(to(), line.dashes.data(), static_cast<int>(line.dashes.size()), 0);
  }
  void draw_rings(const Chart::Line& line) const {
    for (const Chart::Point& point : line.points) ring(x(point.x), y(point.y));
  }
  void ring(double at_x, double at_y) const {
    cairo_new_sub_path(to());
    cairo_arc(to(), at_x, at_y, kRing, 0, 2 * M_PI);
    cairo_stroke(to());
  }

  void draw_legend() const {
    double at = kTop + 6;
    for (const Chart::Line& line : chart_.lines) {
      if (line.name.empty()) continue;
      style(line);
      const double from = right() + 18;
      if (line.rings) {
        ring(from + kLegendSample / 2, at);
      } else {
        cairo_move_to(to(), from, at);
        cairo_line_to(to(), from + kLegendSample, at);
        cairo_stroke(to());
      }
      cairo_set_dash(to(), nullptr, 0, 0);
      write(kText, line.name, from + kLegendSample + 10, at + 4.5, 0);
      at += kLegendRow;
    }
  }

  static constexpr double kCrossing[] = {4, 3};

  const Chart& chart_;
  const Handle<ContextTraits> cairo_;
};

tl::unexpected<Error> failed(cairo_status_t status) {
  return fail(Code::unsupported, "Cairo cannot draw: {}", cairo_status_to_string(status));
}

}  // namespace

Result<std::string> draw(const Chart& chart, Picture picture) {
  std::string out;
  const bool svg = picture == Picture::svg;
  const Surface surface(
      svg ? cairo_svg_surface_create_for_stream(append, &out, kWidth, kHeight)
          : cairo_image_surface_create(CAIRO_FORMAT_RGB24, int(kWidth), int(kHeight)));
  if (const auto status = Pen(chart, surface.get()).draw(); status != CAIRO_STATUS_SUCCESS)
    return failed(status);
  const auto written =
      svg ? CAIRO_STATUS_SUCCESS : cairo_surface_write_to_png_stream(surface.get(), append, &out);
  cairo_surface_finish(surface.get());
  for (const cairo_status_t status : {written, cairo_surface_status(surface.get())})
    if (status != CAIRO_STATUS_SUCCESS) return failed(status);
  return out;
}

}  // namespace crosstie::tools
