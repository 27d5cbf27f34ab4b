// SPDX-License-Identifier: Apache-2.0
// What --system names: a kind of host, and how many of it there are where it is a cluster.
#pragma once
#include <memory>

#include "command.h"
#include "cost/nccl/release.h"
#include "cost/profile.h"
#include "topology/topology.h"

namespace crosstie::tools {

struct System {
  std::string name;  // as it was asked for
  std::shared_ptr<const Machine> kind;
  uint32_t hosts = 0;  // of a cluster; 0: as many as one likes
};

// A machine known by name, a topology file, or a cluster of hosts of one kind.
Result<System> read_system(const std::string& text, const Session& session);

// How many hosts a job on it has: as many as asked for, else (0) all of a cluster, or one. Fails
// where the cluster has fewer.
Result<uint32_t> hosts_of_job(const System& system, uint32_t asked);

// A profile's file. The values that are built in where none is named, or, as CROSSTIE_PROFILE takes
// it too, a machine known by name.
Result<Profile> profile_of(const std::string& text);

// --nccl.
Result<KnownNcclRelease> release_of(const std::string& text);

// Says the warnings; whether they count as errors (CROSSTIE_STRICT), of which it says that too.
bool too_unsure(const std::vector<std::string>& warnings, const Session& session);

CLI::Option* add_system(CLI::App& app, std::string& text);

}  // namespace crosstie::tools
