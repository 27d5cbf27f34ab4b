// SPDX-License-Identifier: Apache-2.0
// An explanation as a chart: the times of all candidates over size, what no algorithm can beat
// beneath them, the choice wide behind its candidate's line, NCCL's own pick as rings on it.
#include <algorithm>
#include <cmath>
#include <map>

#include "chart.h"
#include "explain.h"

namespace crosstie::tools {
namespace {

using Pair = std::pair<Algorithm, Protocol>;

Pair pair_of(const Considered& of) { return {of.algorithm, of.protocol}; }
double us(Seconds time) { return time.count() * 1e6; }

// "196K": to three digits, for people.
std::string bytes_short(uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit < kUnits.size(); unit++) value /= 1024;
  return unit == 0 ? fmt::format("{}", bytes) : fmt::format("{:.3g}{}", value, kUnits[unit - 1]);
}

// Okabe and Ito's, which the colour-blind tell apart; by Algorithm.
constexpr Colour kColours[] = {{0.84, 0.37, 0.00}, {0.00, 0.45, 0.70}, {0.34, 0.71, 0.91},
                               {0.34, 0.71, 0.91}, {0.00, 0.62, 0.45}, {0.80, 0.47, 0.65},
                               {0.90, 0.62, 0.00}, {0.35, 0.35, 0.35}};
static_assert(std::size(kColours) == Names<Algorithm>::all.size());

Colour colour_of(Algorithm algorithm, double alpha) {
  Colour colour = kColours[static_cast<size_t>(algorithm)];
  colour.alpha = alpha;
  return colour;
}

std::vector<double> dashes_of(Protocol protocol) {
  if (protocol == Protocol::ll) return {2, 3};
  if (protocol == Protocol::ll128) return {8, 3};
  return {};
}

Chart::Line line_of(const Explanation& of, const Pair& pair) {
  Chart::Line line;
  bool runs = false;
  for (const Decision& decision : of.curve)
    for (const Considered& one : decision.candidates)
      if (pair_of(one) == pair) {
        line.points.push_back({double(decision.bytes), us(one.prediction.time())});
        runs |= one.why_not.empty();
        line.name = pair_text(one);
      }
  line.colour = colour_of(pair.first, runs ? 1 : 0.3);
  line.width = runs ? 1.8 : 1;
  line.dashes = dashes_of(pair.second);
  if (!runs) line.name += ": no";
  return line;
}

// In the order of the largest size, the slowest first, as they lie in the chart.
void add_candidates(const Explanation& of, Chart& chart) {
  std::vector<Chart::Line> lines;
  std::map<Pair, bool> known;
  for (const Decision& decision : of.curve)
    for (const Considered& one : decision.candidates)
      if (!known[pair_of(one)]) {
        known[pair_of(one)] = true;
        lines.push_back(line_of(of, pair_of(one)));
      }
  std::ranges::stable_sort(lines, [](const Chart::Line& a, const Chart::Line& b) {
    return a.points.back().y > b.points.back().y;
  });
  std::ranges::move(lines, std::back_inserter(chart.lines));
}

// in_network: where NVSwitches add up.
void add_bound(const Explanation& of, bool in_network, Chart& chart) {
  Chart::Line line{
      in_network ? "bound where switches add" : "bound of the links", {0.13, 0.13, 0.15}, 1.5};
  if (in_network) line.dashes = {1, 3};
  line.shades_beneath = true;
  for (const Decision& decision : of.curve) {
    const Bound bound = bound_of(of.collective, of.facts, of.job, decision.bytes, in_network);
    line.points.push_back({double(decision.bytes), us(bound.time)});
  }
  chart.lines.push_back(std::move(line));
}

// A wide line for each choice; the legend has the first.
void add_choice(const Explanation& of, Chart& chart) {
  const auto wide = [&](const Considered& chosen) {
    Chart::Line line{chart.lines.empty() ? "choice" : "", colour_of(chosen.algorithm, 0.28), 11};
    chart.lines.push_back(std::move(line));
  };
  const Considered* last = nullptr;
  for (const Decision& decision : of.curve) {
    const Chart::Point point{double(decision.bytes), us(decision.chosen().prediction.time())};
    if (last != nullptr && !last->same(decision.chosen()))
      chart.lines.back().points.push_back(point);
    if (last == nullptr || !last->same(decision.chosen())) wide(decision.chosen());
    last = &decision.chosen();
    chart.lines.back().points.push_back(point);
  }
}

void add_nccl(const Explanation& of, Chart& chart) {
  Chart::Line line{fmt::format("NCCL {}'s own pick", of.nccl), {0.8, 0.05, 0.1}, 1.4};
  line.rings = true;
  uint64_t next = 0;  // one at each doubling
  for (const Decision& decision : of.curve) {
    if (!decision.nccl || decision.bytes < next) continue;
    next = 2 * decision.bytes;
    line.points.push_back({double(decision.bytes), us(decision.nccl->prediction.time())});
  }
  chart.lines.push_back(std::move(line));
}

void add_bands(const Explanation& of, Chart& chart) {
  std::vector<std::pair<uint64_t, const Considered*>> starts{
      {of.curve.front().bytes, &of.curve.front().chosen()}};
  for (const Crossover& over : of.crossovers) starts.push_back({over.bytes, &over.to});
  for (size_t i = 0; i < starts.size(); i++) {
    const uint64_t end = i + 1 < starts.size() ? starts[i + 1].first : of.curve.back().bytes;
    chart.bands.push_back({double(starts[i].first), double(end),
                           colour_of(starts[i].second->algorithm, i % 2 == 0 ? 0.10 : 0.05),
                           pair_text(*starts[i].second),
                           i == 0 ? "" : bytes_short(starts[i].first)});
  }
}

// Every second power of two, or every fourth of a long range.
Chart::Axis size_axis(const Explanation& of) {
  Chart::Axis axis{"bytes of the whole buffer", double(of.curve.front().bytes),
                   double(of.curve.back().bytes)};
  const double doublings = std::log2(axis.high / axis.low);
  const int step = doublings > 24 ? 4 : doublings > 10 ? 2 : 1;
  for (int power = 0; power < 64; power++) {
    const double at = std::exp2(power);
    if (at < axis.low * 0.999 || at > axis.high * 1.001) continue;
    axis.ticks.push_back({at, power % step == 0 ? bytes_text(uint64_t{1} << power) : ""});
  }
  return axis;
}

std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:g} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:g} ms", us / 1e3);
  return fmt::format("{:g} us", us);
}

// From the bound to the slowest candidate that is near: beyond a hundred times the choice none is.
Chart::Axis time_axis(const Chart& chart, const Explanation& of) {
  double low = HUGE_VAL, high = 0;
  for (const Chart::Line& line : chart.lines)
    for (const Chart::Point& point : line.points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  high = std::min(high, 100 * us(of.curve.back().chosen().prediction.time()));
  Chart::Axis axis{"predicted time", low / 1.3, high * 1.3};
  for (double decade = std::pow(10, std::floor(std::log10(axis.low))); decade < axis.high;
       decade *= 10)
    for (int i = 1; i < 10; i++)
      if (const double at = decade * i; at >= axis.low && at <= axis.high)
        axis.ticks.push_back({at, i == 1 ? time_text(at) : ""});
  return axis;
}

}  // namespace

Result<std::string> explanation_plot(const Explanation& of, Picture picture) {
  if (of.curve.size() < 2)
    return fail(Code::invalid, "--bytes: a plot needs more than one size, as 1K:1G");
  Chart chart;
  chart.title =
      fmt::format("{}: {} GPUs on {} of {}", name(of.collective), of.job.ranks,
                  of.hosts == 1 ? "1 host" : fmt::format("{} hosts", of.hosts), of.system);
  chart.subtitle = fmt::format(
      "NCCL {}, class {}; shaded: where a choice holds, and from which "
      "size on",
      of.nccl, name(of.communicator_class.traffic));
  add_choice(of, chart);
  add_candidates(of, chart);
  add_bound(of, false, chart);
  if (of.facts.multicast && of.collective == Collective::all_reduce) add_bound(of, true, chart);
  add_nccl(of, chart);
  add_bands(of, chart);
  chart.x = size_axis(of);
  chart.y = time_axis(chart, of);
  return draw(chart, picture);
}

}  // namespace crosstie::tools
