// SPDX-License-Identifier: Apache-2.0
// NCCL's side of a tuner's life: communicators with NCCL's constants, the tables that its model
// makes on the systems that we know, and its two ways of choosing from them.
#pragma once
#include <array>
#include <cfloat>
#include <cstdint>
#include <optional>

#include "choice/nccl_decision.h"
#include "cost/system.h"
#include "topology/format/formats.h"

namespace crosstie::test {

struct Table {
  std::array<float, 64> costs{};
  int algorithms = 7, protocols = 3;

  Table() { costs.fill(kNcclIgnored); }
  Table& set(Algorithm a, Protocol p, double us) {
    view().at(a, p) = static_cast<float>(us);
    return *this;
  }
  NcclCostTable view() { return {costs.data(), algorithms, protocols}; }
  int size() const { return algorithms * protocols; }
};

inline NcclRelease nccl_release(std::string_view version = "2.28.9") {
  return find_nccl_release(*parse_nccl_version(version))->release;
}

// As NCCL tells it, with alike nodes.
inline NcclCommunicator communicator(uint32_t nodes, uint32_t ranks_per_node,
                                     const NcclRelease& release = nccl_release()) {
  return {nodes * ranks_per_node,
          nodes,
          ranks_per_node,
          ranks_per_node,
          {release.latency, release.bandwidth}};
}

// As it reads itself on such nodes, which may be of several hosts.
inline NcclModel nccl_on(std::string_view machine, uint32_t nodes, uint32_t ranks_per_node,
                         const NcclRelease& release = nccl_release()) {
  const auto kind = read_synthetic(machine)->hosts[0].machine;
  const uint32_t hosts = std::max(1u, ranks_per_node / kind->count(DeviceKind::gpu));
  return NcclModel(release, model_job(kind, nodes * hosts, ranks_per_node / hosts, release)->nccl);
}

// As a rank sees it whose host has such a CPU, in releases before 2.23, in which each rank goes by
// its own.
inline NcclModel seen_from(NcclCpu cpu, const NcclModel& nccl,
                           const NcclRelease& release = nccl_release()) {
  NcclJob job = nccl.job();
  job.cpu = cpu;
  return NcclModel(release, job);
}

inline Table table_of(const NcclModel& nccl, Collective collective, uint64_t bytes,
                      uint32_t operations = 1) {
  Table table;
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (const auto time = nccl.time({collective, bytes, operations}, algorithm, protocol))
        table.set(algorithm, protocol, time->count() * 1e6);
    }
  return table;
}

inline Table four_h100_nodes(uint64_t bytes, Collective collective = Collective::all_reduce) {
  return table_of(nccl_on("dgx-h100", 4, 8), collective, bytes);
}

inline Profile published() { return *read_profile(known_profiles()[0].toml); }
inline Profile named(std::string_view machine) {
  Profile profile = published();
  profile.name = machine, profile.system = *facts_of_known(machine);
  return profile;
}

// Any algorithm, as much time as it takes.
inline CommunicatorClass any_class() {
  CommunicatorClass of;
  of.nvls = true;
  return of;
}

// NCCL up to 2.30 starts its search for the least time here: what costs more never runs.
constexpr float kNcclNeverRun = 3.6e9f;

// Index of the entry that NCCL runs, up to 2.30: the least that is not negative, the first of
// equals.
inline std::optional<int> runs_before_2_31(const Table& table) {
  std::optional<int> best;
  float least = kNcclNeverRun;
  for (int i = 0; i < table.size(); i++)
    if (table.costs[i] != kNcclIgnored && table.costs[i] >= 0 && table.costs[i] < least)
      least = table.costs[i], best = i;
  return best;
}

// From 2.31: the least of the entries that are allowed (those of the table before the tuner),
// the last of equals.
inline std::optional<int> runs_from_2_31(const Table& before, const Table& after) {
  std::optional<int> best;
  float least = FLT_MAX;
  for (int i = 0; i < after.size(); i++)
    if (before.costs[i] != kNcclIgnored && after.costs[i] <= least)
      least = after.costs[i], best = i;
  return best;
}

inline int index_of(const Table& table, const Candidate& candidate) {
  return static_cast<int>(candidate.algorithm) * table.protocols +
         static_cast<int>(candidate.protocol);
}

inline bool picks(const Choice& choice, Algorithm algorithm, Protocol protocol) {
  return !choice.abstains() && choice.candidates[0].algorithm == algorithm &&
         choice.candidates[0].protocol == protocol;
}

}  // namespace crosstie::test
