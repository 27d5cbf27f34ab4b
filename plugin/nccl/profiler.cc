// SPDX-License-Identifier: Apache-2.0
#include "nccl/profiler.h"

#include "base/printable.h"
#include "nccl/abi/profiler_v4.h"

namespace crosstie::nccl {

Profiler::Profiler(const LoggedRank& rank, const Environment& environment, Logger log)
    : share_(rank.communicator, environment, log) {
  share_.tell_name(rank.name);
  log.introduce("profiler: communicator {:#x} is '{}'", rank.communicator, printable(rank.name));
  const auto options = read_options<ProfilerOptions>(kProfilerOptions, environment);
  if (!options || options->log.empty()) return;
  auto file = open_log(expanded(options->log));
  if (file)
    outcomes_.emplace(*std::move(file), rank, share_);
  else
    log.warn("{}: {}; outcomes are not logged", kProfilerOptions[0].name, file.error().text);
}

int Profiler::wanted_events() const {
  return outcomes_ ? static_cast<int>(abi::kCollectiveEvent | abi::kKernelChannelEvent) : 0;
}

}  // namespace crosstie::nccl
