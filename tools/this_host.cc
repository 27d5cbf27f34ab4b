// SPDX-License-Identifier: Apache-2.0
#include "this_host.h"

#include <optional>

#include "base/identity.h"
#include "driver/drivers.h"
#include "runtime/host_view.h"
#include "runtime/job.h"
#include "runtime/once_per_host.h"
#include "topology/format/formats.h"
#include "topology/options.h"
#include "topology/probe/live.h"

namespace crosstie::tools {
namespace {

// A host of many GPUs takes a second or two; drivers that load, some more.
constexpr std::chrono::seconds kProbeTimeout{30};

struct Seen {
  Topology topology;
  bool holds_for_all = true;  // ranks of this view
};

Result<Seen> probe(const TopologyOptions& options) {
  Drivers drivers;
  drivers.verbs = open_verbs();
  drivers.nvml = open_nvml();
  // CUDA is slow to start and tells less.
  if (!drivers.nvml) drivers.cuda = open_cuda();
  auto machine = probe_live({.drivers = drivers, .host = host_name(), .hcas = options.hcas});
  if (!machine) return pass(machine, "this host");
  return Seen{single_host(std::move(*machine)), drivers.nvml || !drivers.cuda};
}

// CUDA shows each process its own GPUs, so that what it alone tells is not shared.
Result<Topology> probe_once(const std::string& view, const LocalJob& job,
                            const TopologyOptions& options) {
  std::optional<Topology> own;
  const auto make = [&]() -> Result<std::string> {
    auto seen = probe(options);
    if (!seen) return pass(seen);
    const std::string text =
        seen->holds_for_all ? json_text(seen->topology, JsonRails::none) : std::string();
    own = std::move(seen->topology);
    if (text.empty()) return fail(Code::unsupported, "CUDA alone tells of GPUs");
    return text;
  };
  const HostShare share{fmt::format("topology {} {} {}", job.id, options.hcas, view), job.ranks};
  const auto text = once_per_host(share, make, kProbeTimeout);
  if (own) return std::move(*own);
  if (!text) return pass(text);
  return read_json(*text);
}

Result<Topology> probe_alone(const TopologyOptions& options) {
  auto seen = probe(options);
  if (!seen) return pass(seen);
  return std::move(seen->topology);
}

}  // namespace

Result<Topology> this_host(const Environment& environment, const Log& log) {
  const auto options = read_options<TopologyOptions>(kTopologyOptions, environment);
  if (!options) return pass(options);
  const auto job = find_local_job(environment);
  if (!job || job->ranks == 1) return probe_alone(*options);
  auto shared = probe_once(host_view(environment), *job, *options);
  if (shared) return shared;
  log.warn("the job's ranks on this host do not share what one of them finds: {}",
           shared.error().text);
  return probe_alone(*options);
}

}  // namespace crosstie::tools
