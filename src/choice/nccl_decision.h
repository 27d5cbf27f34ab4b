// SPDX-License-Identifier: Apache-2.0
// What the tuner of one communicator answers: made when the communicator is, of facts that all its
// ranks share, and from then on a look-up.
//
// On a system that is named (a profile's) the answer follows from the collective, the size and what
// NCCL's table ignores; of its times only a fence around rings is read (nccl_decision.cc). What has
// no times here (CollNet, NVLS over several nodes) must not be offered by it, and where NCCL shows
// no table, what it does not check itself is not asked for. Where
// none is named, and on one node, those built-in systems count whose times the table has; where
// they would not all answer alike, NCCL's own choice stands. On one node all ranks have the same
// table: only graphs, which are reduced over all ranks before (NCCL 2.28.9, src/init.cc), and the
// least compute capability make it. On several each time holds the latency of the rank's own NIC,
// which is not reduced (src/graph/search.cc, latencyInter), and before 2.23 its own CPU's: there a
// system must be named.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "choice/choice.h"
#include "choice/nccl_ranking.h"
#include "choice/nccl_table.h"
#include "cost/known_systems.h"
#include "cost/profile.h"

namespace crosstie {

// What all ranks of a communicator know of it. A node is NCCL's node, which is a whole NVLink
// domain where domains span hosts. Before tuner interface 5 NCCL tells neither ranks per domain,
// which are then those of an even spread, nor constants, which are zeros.
struct NcclCommunicator {
  uint32_t ranks = 0, nodes = 0;
  uint32_t fewest_ranks_per_domain = 0, most_ranks_per_domain = 0;
  NcclConstants constants;

  uint64_t digest() const;
};

class NcclDecision {
 public:
  // On the profile's system, or one of those that are built in where it has none.
  NcclDecision(const NcclCommunicator& communicator, const CommunicatorClass& of,
               const Profile& profile);

  // On NCCL's launch path: no lock, no allocation. The table may be empty where NCCL shows none.
  // The first candidate is to run and may be NCCL's own, which is the second where there is a
  // table.
  // operations: of a group in a row, which NCCL's times count.
  Choice choose(Collective collective, uint64_t bytes, const NcclCostTable& table,
                uint32_t operations = 1) const;
  // For the log: what the candidates of a choice for that call are predicted to take.
  void price(Collective collective, uint64_t bytes, Choice& choice) const;

  uint64_t digest() const { return digest_; }  // of the facts
  // Of these and of the question, to see whether ranks decide from the same. For the log only.
  uint64_t digest_of(Collective collective, uint64_t bytes, const NcclCostTable& table) const;
  // What is decided for, in words: "dgx-h100", "one of 9 systems".
  const std::string& about() const { return about_; }

 private:
  struct System {
    std::string reason;             // its text is by which a choice knows it
    std::optional<NcclModel> nccl;  // to know it by; none: named
    NcclRanking ranking;
  };
  void add_named(const Profile& profile, const CommunicatorClass& of);
  void add_built_in(const Profile& profile, const CommunicatorClass& of);
  CostJob job() const { return {communicator_.ranks, communicator_.nodes}; }

  Choice pick(const NcclCall& call, const NcclCostTable& table) const;
  uint32_t budget_at(uint64_t bytes, const NcclCostTable& table) const;

  NcclCommunicator communicator_;
  CommunicatorClass class_;
  uint64_t digest_;
  std::string about_;
  std::vector<System> systems_;
};

}  // namespace crosstie
