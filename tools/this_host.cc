// SPDX-License-Identifier: Apache-2.0
#include "this_host.h"

#include "base/identity.h"
#include "driver/drivers.h"
#include "runtime/job.h"
#include "runtime/once_per_host.h"
#include "topology/format/formats.h"
#include "topology/options.h"
#include "topology/probe/live.h"

namespace crosstie::tools {
namespace {

// A host of many GPUs takes a second or two; drivers that load, some more.
constexpr std::chrono::seconds kProbeTimeout{30};

Result<Topology> probe(const TopologyOptions& options) {
  Drivers drivers;
  drivers.verbs = open_verbs();
  drivers.nvml = open_nvml();
  // CUDA is slow to start and tells less.
  if (!drivers.nvml) drivers.cuda = open_cuda();
  auto machine = probe_live({.drivers = drivers, .host = host_name(), .hcas = options.hcas});
  if (!machine) return pass(machine, "this host");
  return single_host(std::move(*machine));
}

Result<Topology> probe_once(const LocalJob& job, const TopologyOptions& options) {
  const auto make = [&]() -> Result<std::string> {
    const auto topology = probe(options);
    if (!topology) return pass(topology);
    return json_text(*topology);
  };
  const HostShare share{fmt::format("topology {} {}", job.id, options.hcas), job.ranks};
  const auto text = once_per_host(share, make, kProbeTimeout);
  if (!text) return pass(text);
  return read_json(*text);
}

}  // namespace

Result<Topology> this_host(const Environment& environment, const Log& log) {
  const auto options = read_options<TopologyOptions>(kTopologyOptions, environment);
  if (!options) return pass(options);
  const auto job = find_local_job(environment);
  if (!job || job->ranks == 1) return probe(*options);
  auto shared = probe_once(*job, *options);
  if (shared) return shared;
  log.warn("the job's ranks on this host do not share what one of them finds: {}",
           shared.error().text);
  return probe(*options);
}

}  // namespace crosstie::tools
