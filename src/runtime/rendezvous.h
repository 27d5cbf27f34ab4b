// SPDX-License-Identifier: Apache-2.0
// How ranks meet: all connect to rank 0, hand in their facts, and get everybody's. The
// connections stay, as the star over which health.h tells who lives.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/channel.h"
#include "runtime/job.h"

namespace crosstie {

// On rank 0 a channel to each other rank (its own is empty); elsewhere one to rank 0.
struct Star {
  std::vector<Channel> spokes;
  Channel hub;
};

struct Met {
  std::vector<std::string> facts;  // by rank
  Star star;
};

// Makes this rank's facts, once it is known by which of its addresses this host met the others;
// empty where that says nothing of how they reach it.
using MakeFacts = std::function<Result<std::string>(const std::string& local_address)>;

// Collective; blocks until all ranks have come, at most `timeout`. Strays on the port (scans,
// other jobs' ranks, silence) are dropped and do no harm. Rank 0 raises its process's soft limit of
// open files where the ranks would not fit.
Result<Met> meet(const Job& job, const MakeFacts& make_facts, Clock::duration timeout,
                 const Log& log);

}  // namespace crosstie
