// SPDX-License-Identifier: Apache-2.0
// This host's topology, looked at live: in a job once for all of its ranks here.
#pragma once
#include "base/log.h"
#include "base/options.h"
#include "topology/topology.h"

namespace crosstie::tools {

Result<Topology> this_host(const Environment& environment, const Log& log);

}  // namespace crosstie::tools
