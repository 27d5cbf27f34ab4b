// SPDX-License-Identifier: Apache-2.0
#include "cost/measurements.h"

#include "base/printable.h"

namespace crosstie {

std::string MeasuredRun::where() const { return printable(file); }

std::string MeasuredRun::where(const Outcome& of) const {
  return fmt::format("{}: {} {}", where(), counted, of.line);
}

std::string MeasuredRun::what() const {
  const std::string of = collective ? std::string(name(*collective)) : printable(program);
  const std::string on = hosts > 0   ? fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s")
                         : nodes > 0 ? fmt::format("{} node{}", nodes, nodes == 1 ? "" : "s")
                                     : "hosts not told";
  return fmt::format("{} of {} rank{} on {}{}{}", of, ranks, ranks == 1 ? "" : "s", on,
                     limits.text().empty() ? "" : ", ", limits.text());
}

Status tell(MeasuredRun& run, const ToldOfLog& told) {
  for (const auto& [name, value] : told) {
    if (name == "collective") {
      run.collective = spelled<Collective>(value);
      if (!run.collective)
        return fail(Code::invalid, "collective={}: is none of {}", printable(value),
                    fmt::join(Names<Collective>::all, ", "));
    } else if (NcclLimits::heeds(name)) {
      if (Status set = run.limits.set(name, value); !set) return set;
    } else {
      return fail(Code::invalid,
                  "{}: of a log can be told collective, NCCL_ALGO, NCCL_PROTO and "
                  "NCCL_NVLS_ENABLE",
                  printable(name));
    }
  }
  return {};
}

}  // namespace crosstie
