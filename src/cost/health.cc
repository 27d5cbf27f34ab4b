// SPDX-License-Identifier: Apache-2.0
#include "cost/health.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cost/bound.h"
#include "cost/nccl/pair.h"

namespace crosstie {
namespace {

// From how much on something is worth a word, below 1 MiB and from there on: what 99 of 100 rows of
// 3,800 published pairs of in-place and out-of-place times, and of 7,900 neighbouring sizes, stay
// below.
struct Limit {
  double small, large;
  double at(uint64_t bytes) const { return bytes < (1 << 20) ? small : large; }
};
constexpr Limit kApart{2.4, 1.5}, kFasterThanSmaller{2.2, 2.0};
// Of the same size, measured again: published pairs of one run and size differ by 7 % (upper
// quartile), 19 of 20 large ones by less than 12 %.
constexpr Limit kRepeats{1.5, 1.25};
// The model is 12 % off in the middle, and for few systems by half.
constexpr double kBelowModel = 2;
// No wire is twice as fast as others of its kind.
constexpr double kAboveModel = 2;
// A fit that is this far off in the middle explains nothing.
constexpr double kNotExplained = 0.5;
// Times are told to a hundredth of a microsecond; wires' rates are no better known.
constexpr double kAboveLinks = 1.02;
// What it takes to see steps and bytes apart: sizes where either is next to nothing.
constexpr size_t kFewestSizes = 6;
constexpr uint64_t kSmallEnough = 64 << 10, kLargeEnough = 16 << 20;

// The worst of a run, and how many there are.
struct Worst {
  double excess = 0;
  size_t count = 0;
  std::string evidence;

  template <class Text>
  void see(double ratio, double limit, Text&& text) {
    if (ratio < limit) return;
    count++;
    if (ratio / limit <= excess) return;
    excess = ratio / limit, evidence = text();
  }
  std::string told() const {
    return count > 1 ? fmt::format("{}, and {} more", evidence, count - 1) : evidence;
  }
};

double us(Seconds time) { return time.count() * 1e6; }
std::string time_text(uint64_t bytes, Seconds time) {
  return fmt::format("{}B in {:.2f} us", bytes_text(bytes), us(time));
}
double ratio(Seconds a, Seconds b) { return std::max(a / b, b / a); }

// As nccl-tests counts it (doc/PERFORMANCE.md), GB/s.
double bus_bandwidth(const Observation& of, Seconds time) {
  const double ranks = of.job.ranks, share = (ranks - 1) / ranks;
  const double factor = of.collective == Collective::all_reduce ? 2 * share
                        : has_shares(of.collective)             ? share
                                                                : 1;
  return factor * static_cast<double>(of.bytes) / time.count() / 1e9;
}

Seconds middle(std::vector<Seconds> times) {
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, at);
  return *at;
}

class Health {
 public:
  Health(const CalibratedRun& one, const ParameterValues& values, std::vector<Finding>& findings)
      : one_(one), run_(one.run), values_(values), findings_(findings) {}

  void examine() {
    wrong_data();
    left_out();
    if (!run_.on_gpu && !run_.ended)
      add(Severity::warning, "ended-early", "the run ended early",
          "no line 'Avg bus bandwidth' at its end",
          "see its errors, and run it again; the sizes that are there are fitted to");
    if (!one_.left_out.empty()) return;
    places_apart();
    larger_is_faster();
    above_links();
    below_model();
    above_model();
    not_explained();
  }

 private:
  void add(Severity severity, std::string_view check, std::string_view what, std::string evidence,
           std::string_view advice) {
    findings_.push_back({.severity = severity,
                         .check = check,
                         .what = fmt::format("{}: {}: {}", run_.where(), run_.what(), what),
                         .evidence = std::move(evidence),
                         .advice = std::string(advice)});
  }
  void add(Severity severity, std::string_view check, std::string_view what, const Worst& worst,
           std::string_view advice) {
    if (worst.count > 0) add(severity, check, what, worst.told(), advice);
  }
  std::string at(const Outcome& of) const { return fmt::format("{} {}", run_.counted, of.line); }

  void wrong_data() {
    Worst worst;
    for (const Outcome& of : run_.outcomes)
      worst.see(of.wrong, 1, [&] {
        return fmt::format("{}: {:.0f} elements of {}B {}", at(of), of.wrong, bytes_text(of.bytes),
                           of.in_place ? "in place" : "out of place");
      });
    if (worst.count == 0 && run_.out_of_bounds > 0)
      worst = {1, 1, fmt::format("{} values out of bounds", run_.out_of_bounds)};
    add(Severity::error, "wrong-data", "the data is wrong", worst,
        "look for a sick GPU, link or NIC before anything else; these times are not fitted to");
  }

  void left_out() {
    const std::string skipped = fmt::format("{}", fmt::join(run_.skipped, ", "));
    if (one_.left_out.empty() && one_.not_modelled > 0)
      add(Severity::note, "left-out", "sizes are left out",
          fmt::format("{} for which the system has no {}/{} in the model", one_.not_modelled,
                      name(one_.for_one.algorithm), name(one_.for_one.protocol)),
          "");
    if (one_.left_out.empty() && !skipped.empty())
      add(Severity::note, "left-out", "a part is left out", skipped, "");
    if (one_.left_out.empty()) return;
    // Of a program that has no model there is nothing to be done.
    const bool known = run_.collective || run_.program.empty();
    add(known ? Severity::warning : Severity::note, "left-out", "the run is left out",
        one_.left_out + (skipped.empty() ? "" : ": " + skipped),
        known ? "measure it otherwise, or leave it out of the command" : "");
  }

  void places_apart() {
    std::map<size_t, Outcome> out_of_place;
    for (const Outcome& of : run_.outcomes)
      if (!of.in_place) out_of_place[of.line] = of;
    Worst worst;
    for (const Outcome& of : run_.outcomes) {
      const auto other = out_of_place.find(of.line);
      if (!of.in_place || other == out_of_place.end()) continue;
      const Seconds there = other->second.time;
      worst.see(ratio(of.time, there), kApart.at(of.bytes), [&] {
        return fmt::format("{}: {} out of place, {:.2f} us in place", at(of),
                           time_text(of.bytes, there), us(of.time));
      });
    }
    add(Severity::warning, "places-apart", "in place and out of place are far apart", worst,
        "measure again with more iterations (-n 50 -w 10) on hosts that nobody else uses");
  }

  void larger_is_faster() {
    Worst worst;
    for (const bool in_place : {false, true}) {
      std::map<uint64_t, std::vector<Seconds>> by_size;
      for (const Outcome& of : run_.outcomes)
        if (of.in_place == in_place) by_size[of.bytes].push_back(of.time);
      for (auto at = by_size.begin(); at != by_size.end() && std::next(at) != by_size.end(); ++at) {
        const auto& [bytes, times] = *std::next(at);
        const Seconds small = middle(at->second), large = middle(times);
        worst.see(small / large, kFasterThanSmaller.at(bytes), [&, size = at->first, b = bytes] {
          return fmt::format("{}, {}", time_text(size, small), time_text(b, large));
        });
      }
    }
    add(Severity::warning, "larger-is-faster", "a larger message takes less time", worst,
        "another job may have been in the way, or NCCL changes its algorithm too late: measure "
        "again, and each algorithm by itself (NCCL_ALGO)");
  }

  void above_links() {
    Worst worst;
    for (const Observation& of : one_.observations) {
      const Bound bound = bound_of(of.collective, of.facts, of.job, of.bytes, of.facts.multicast);
      worst.see(bound.time / of.measured, kAboveLinks, [&] {
        return fmt::format("{}: {:.1f} GB/s of bus bandwidth, where the links carry {:.1f} ({})",
                           time_text(of.bytes, of.measured), bus_bandwidth(of, of.measured),
                           bus_bandwidth(of, bound.time), bound.by);
      });
    }
    add(Severity::error, "above-links", "it is faster than the links", worst,
        "the system is another than --system says: check its links and NICs");
  }

  void below_model() {
    Worst worst;
    for (const Observation& of : one_.observations) {
      if (of.bytes < (1 << 20)) continue;
      const Seconds expected = predicted(values_, of);
      worst.see(of.measured / expected, kBelowModel, [&] {
        return fmt::format(
            "{}: {:.1f} GB/s of bus bandwidth, where {:.1f} are to be expected of "
            "{}/{}",
            time_text(of.bytes, of.measured), bus_bandwidth(of, of.measured),
            bus_bandwidth(of, expected), name(of.algorithm), name(of.protocol));
      });
    }
    add(Severity::warning, "below-model", "it is far slower than the model", worst,
        "look for lost lanes, NVLinks and NICs (crosstie topo check), GPUDirect RDMA that is off, "
        "and other jobs; or something else ran than is taken for it");
  }

  void above_model() {
    Worst worst;
    for (const Observation& of : one_.observations) {
      const Seconds expected = predicted(values_, of);
      worst.see(expected / of.measured, kAboveModel, [&] {
        return fmt::format("{}, where {:.2f} us are to be expected of {}/{}",
                           time_text(of.bytes, of.measured), us(expected), name(of.algorithm),
                           name(of.protocol));
      });
    }
    if (2 * worst.count > one_.observations.size())
      add(Severity::warning, "above-model", "it is far faster than the model", worst,
          "the system is another than --system says, or something else ran than is taken for it");
  }

  void not_explained() {
    if (one_.after.median <= kNotExplained) return;
    add(Severity::warning, "not-explained", "the fit does not explain it",
        fmt::format("half of its times are off by {:.0f} % or more", 100 * one_.after.median),
        "it is of another system or job than --system and the log say, or something else ran: "
        "leave it out of the command");
  }

  const CalibratedRun& one_;
  const MeasuredRun& run_;
  const ParameterValues& values_;
  std::vector<Finding>& findings_;
};

// Repeats of a size, in a run or in several.

struct Repeated {
  uint64_t bytes = 0;
  std::vector<Seconds> times;
  // From the largest to the least; of many from the upper to the lower quartile.
  double spread() {
    constexpr size_t kMany = 4;
    std::ranges::sort(times);
    const size_t off = times.size() < kMany ? 0 : times.size() / 4;
    return times[times.size() - 1 - off] / times[off];
  }
};

void repeats(std::span<const CalibratedRun> runs, std::vector<Finding>& findings) {
  // Runs are of one arm where they say the same of themselves.
  std::map<std::pair<std::string, bool>, std::vector<const CalibratedRun*>> arms;
  for (const CalibratedRun& one : runs)
    if (one.left_out.empty()) arms[{one.run.what(), one.run.on_gpu}].push_back(&one);
  for (const auto& [arm, of_arm] : arms) {
    std::map<std::tuple<uint64_t, bool, std::optional<NcclPair>>, Repeated> repeated;
    for (const CalibratedRun* one : of_arm)
      for (const Outcome& of : one->run.outcomes) {
        Repeated& times = repeated[{of.bytes, of.in_place, of.ran}];
        times.bytes = of.bytes, times.times.push_back(of.time);
      }
    Worst worst;
    for (auto& [key, of] : repeated)
      worst.see(of.spread(), kRepeats.at(of.bytes), [&of = of] {
        return fmt::format("{}B took from {:.2f} to {:.2f} us in {} times", bytes_text(of.bytes),
                           us(of.times.front()), us(of.times.back()), of.times.size());
      });
    if (worst.count == 0) continue;
    findings.push_back(
        {.severity = Severity::warning,
         .check = "repeats-disagree",
         .what = fmt::format("{}: {}: repeats disagree", of_arm.front()->run.where(), arm.first),
         .evidence = worst.told(),
         .advice = "measure when nothing else runs; a host among several that is "
                   "slower than the others shows in runs of pairs of hosts"});
  }
}

// Of all runs of a collective on so many ranks together, be they one a size or one an algorithm.
void few_sizes(std::span<const CalibratedRun> runs, std::vector<Finding>& findings) {
  struct Sizes {
    std::set<uint64_t> all;
    std::string where;
  };
  std::map<std::tuple<bool, Collective, uint32_t, uint32_t>, Sizes> by_job;
  for (const CalibratedRun& one : runs)
    for (const Observation& of : one.observations) {
      Sizes& sizes = by_job[{of.on_gpu, of.collective, of.job.ranks, of.job.nodes}];
      if (sizes.where.empty()) sizes.where = one.run.where();
      sizes.all.insert(of.bytes);
    }
  for (const auto& [job, sizes] : by_job) {
    const auto& [on_gpu, collective, ranks, nodes] = job;
    const uint64_t least = *sizes.all.begin(), most = *sizes.all.rbegin();
    std::string_view lacking;
    if (sizes.all.size() < kFewestSizes) lacking = "they are few";
    if (least > kSmallEnough) lacking = "none shows latency";
    if (most < kLargeEnough) lacking = "none shows bandwidth";
    if (lacking.empty()) continue;
    // A job's own traffic has the sizes that it has.
    findings.push_back(
        {.severity = on_gpu ? Severity::note : Severity::warning,
         .check = "few-sizes",
         .what = fmt::format("{}: {} of {} ranks on {} node{}: too few sizes to tell", sizes.where,
                             name(collective), ranks, nodes, nodes == 1 ? "" : "s"),
         .evidence = fmt::format("{} from {}B to {}B: {}", sizes.all.size(), bytes_text(least),
                                 bytes_text(most), lacking),
         .advice = "measure from 8 bytes to 8 GiB (-b 8 -e 8G -f 2)"});
  }
}

}  // namespace

std::vector<Finding> health_of(std::span<const CalibratedRun> runs, const ParameterValues& values) {
  std::vector<Finding> findings;
  for (const CalibratedRun& one : runs) Health(one, values, findings).examine();
  repeats(runs, findings);
  few_sizes(runs, findings);
  return sorted(std::move(findings));
}

}  // namespace crosstie
