// SPDX-License-Identifier: Apache-2.0
#include "cost/measurements.h"

#include <algorithm>
#include <set>

#include "base/numbers.h"
#include "base/printable.h"

namespace crosstie {

std::string MeasuredRun::where() const { return printable(file); }

std::string MeasuredRun::where(const Outcome& of) const {
  return fmt::format("{}: {} {}", where(), counted, of.line);
}

std::string MeasuredRun::what() const {
  const std::string of = collective        ? std::string(name(*collective))
                         : program.empty() ? "a collective that is not told"
                                           : printable(program);
  const std::string on = hosts > 0   ? fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s")
                         : nodes > 0 ? fmt::format("{} node{}", nodes, nodes == 1 ? "" : "s")
                                     : "hosts not told";
  return fmt::format("{} of {} rank{} on {}{}{}", of, ranks, ranks == 1 ? "" : "s", on,
                     limits.text().empty() ? "" : ", ", limits.text());
}

void MeasuredRun::leave_out(std::string_view why) {
  if (unfit.empty()) unfit = why;
}

void Unreadable::see(std::string_view where, std::string_view what) {
  if (count_++ == 0) first_ = fmt::format("{}: {}", where, what);
}

void Unreadable::tell(MeasuredRun& run) const {
  if (count_ > 0)
    run.skipped.push_back(fmt::format("{} {}{} that cannot be read ({})", count_, kind_,
                                      count_ == 1 ? "" : "s", first_));
}

namespace {

// Of what nccl-tests has programs, and NCCL no choice of algorithms.
enum class Unmodelled : uint8_t { alltoall, alltoallv, gather, hypercube, scatter, sendrecv };

}  // namespace

template <>
struct Names<Unmodelled> {
  static constexpr std::array<std::string_view, 6> all = {"alltoall",  "alltoallv", "gather",
                                                          "hypercube", "scatter",   "sendrecv"};
};

namespace {

std::string program_of(std::string_view collective) {
  if (const auto known = spelled<Collective>(collective))
    return fmt::format("{}_perf", name(*known));
  if (const auto other = spelled<Unmodelled>(collective))
    return fmt::format("{}_perf", name(*other));
  return "";
}

Status check(const std::string& name, const std::string& value) {
  if (name == "collective" && program_of(value).empty())
    return fail(Code::invalid, "collective={}: is none of {}, {}", printable(value),
                fmt::join(Names<Collective>::all, ", "), fmt::join(Names<Unmodelled>::all, ", "));
  if (name == "NCCL_NVLS_ENABLE" && !number_of<uint32_t>(value))
    return fail(Code::invalid, "NCCL_NVLS_ENABLE={}: is no number", printable(value));
  if (name != "collective" && !NcclLimits::heeds(name))
    return fail(Code::invalid,
                "{}: of a log can be told collective, NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE",
                printable(name));
  return {};
}

}  // namespace

Status tell(MeasuredRun& run, const ToldOfLog& told) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : told) {
    if (const Status good = check(name, value); !good) return good;
    if (!names.insert(name).second) return fail(Code::invalid, "{} is told twice of one log", name);
    if (!NcclLimits::heeds(name)) continue;
    if (Status set = run.limits.set(name, value); !set) return set;
  }
  return {};
}

std::string program_told(const ToldOfLog& told) {
  const auto at = std::ranges::find(told, "collective",
                                    [](const auto& one) { return std::string_view(one.first); });
  return at == told.end() ? "" : program_of(at->second);
}

}  // namespace crosstie
