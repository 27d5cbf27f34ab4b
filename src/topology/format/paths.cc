// SPDX-License-Identifier: Apache-2.0
// The path from every GPU to every other and to every port: NCCL's class, the rate of its narrowest
// link, marked with "~" where it is assumed, what it leads over; and what NCCL takes instead, where
// that is another.
#include <algorithm>

#include "base/printable.h"
#include "topology/format/formats.h"
#include "topology/format/mark.h"
#include "topology/path.h"

namespace crosstie {
namespace {

std::string route_text(const Machine& machine, const Paths& paths, uint32_t from, uint32_t to) {
  std::string out;
  for (const uint32_t device : paths.route(from, to))
    out += (out.empty() ? "" : " - ") + machine.devices()[device].label;
  return out;
}

class PathTable {
 public:
  explicit PathTable(const Machine& machine)
      : machine_(machine),
        physical_(machine, Paths::View::physical),
        nccl_(machine, Paths::View::nccl) {}

  std::string text() {
    std::string out;
    const auto gpus = machine_.endpoints(DeviceKind::gpu);
    for (const uint32_t from : gpus) {
      for (const uint32_t to : gpus)
        if (to > from) out += line(from, to);
      for (const uint32_t to : machine_.endpoints(DeviceKind::port)) out += line(from, to);
    }
    return gpus.empty() ? "  no GPUs\n" : out;
  }

  // Whether a rate in the text is marked as assumed.
  bool has_marks() const { return has_marks_; }

 private:
  std::string line(uint32_t from, uint32_t to) {
    const Path is = physical_.between(from, to), taken = nccl_.between(from, to);
    const auto label = [&](uint32_t i) -> const std::string& {
      return machine_.devices()[i].label;
    };
    std::string out = fmt::format("  {} {}: ", label(from), label(to));
    if (is.type == PathClass::dis) return printable(out + "none") + "\n";
    out += fmt::format("{}, {}", rate_text(is), route_text(machine_, physical_, from, to));
    if (taken.type != is.type || taken.bandwidth != is.bandwidth)
      out += fmt::format("; NCCL: {}, {}", rate_text(taken), route_text(machine_, nccl_, from, to));
    return printable(out) + "\n";
  }

  // What stays within a device has no link whose rate there were.
  std::string rate_text(const Path& path) {
    if (path.type == PathClass::loc) return std::string(name(path.type));
    has_marks_ |= !mark(path.rate()).empty();
    return fmt::format("{} {}{}", name(path.type), mark(path.rate()), to_text(path.bandwidth));
  }

  const Machine& machine_;
  const Paths physical_, nccl_;
  bool has_marks_ = false;
};

}  // namespace

std::string paths_text(const Topology& topology) {
  std::string out;
  std::vector<const Machine*> told;
  bool has_marks = false;
  for (const Host& host : topology.hosts) {
    const Machine* const machine = host.machine.get();
    if (std::ranges::find(told, machine) != told.end()) continue;
    told.push_back(machine);
    PathTable table(*machine);
    out += printable(host.name) + ":\n" + table.text();
    has_marks |= table.has_marks();
  }
  if (has_marks) out += kAssumedLegend;
  return out;
}

}  // namespace crosstie
