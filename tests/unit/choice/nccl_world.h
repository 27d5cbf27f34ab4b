// SPDX-License-Identifier: Apache-2.0
// NCCL's side of a tuner's life: communicators with NCCL's constants, its cost tables, and its
// two ways of choosing from them.
#pragma once
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "choice/nccl_choice.h"

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

// NCCL 2.28.9's base and step latencies in microseconds, LL, LL128, Simple.
inline NcclLatencies nccl_latencies() {
  const auto us = [](double ll, double ll128, double simple) {
    return std::array{microseconds(ll), microseconds(ll128), microseconds(simple)};
  };
  return {{us(6.8, 14.0, 8.4), us(0.6, 1.25, 4.0), us(5.0, 8.5, 14.0)},
          {us(6.6, 14.0, 8.4), us(0.6, 1.9, 3.4), us(2.7, 4.0, 14.0)}};
}

inline NcclCommunicator communicator(uint32_t nodes, uint32_t ranks_per_node) {
  return {nodes * ranks_per_node, nodes, ranks_per_node, ranks_per_node, nccl_latencies()};
}

// Latency in microseconds and bandwidth in GB/s of one pair, as NCCL prints them.
struct Line {
  Algorithm algorithm;
  Protocol protocol;
  double latency, bandwidth;
};

// NCCL's factors on a tree's bandwidth, by protocol, from 64 bytes in powers of two.
inline double tree_factor(Protocol protocol, uint64_t bytes) {
  static constexpr double kFactor[3][23] = {
      {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
      {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
      {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};
  if (bytes < 64) return 1;
  const int index = std::ilogb(static_cast<double>(bytes / 64));
  return index < 23 ? kFactor[static_cast<int>(protocol)][index] : 1;
}

// NCCL's time for an AllReduce. `plateau`: what it multiplies Ring/Simple's latency with between
// nodes once each channel has 64 bytes for each rank.
inline double time_of(const Line& line, uint64_t bytes, bool plateau) {
  double bandwidth = line.bandwidth, latency = line.latency;
  if (line.algorithm == Algorithm::tree) bandwidth *= tree_factor(line.protocol, bytes);
  if (plateau && line.algorithm == Algorithm::ring && line.protocol == Protocol::simple)
    latency *= 1.4;
  return latency + static_cast<double>(bytes) / (1000 * bandwidth);
}

// What NCCL 2.28.9's own decision code computes for 4 nodes of 8 H100, one 400G NIC for each
// GPU, AllReduce. 16 channels.
inline constexpr Line kFourH100Nodes[] = {
    {Algorithm::tree, Protocol::ll, 35.2, 8.67},
    {Algorithm::tree, Protocol::ll128, 65.5, 98.6},
    {Algorithm::tree, Protocol::simple, 120.4, 122.4},
    {Algorithm::ring, Protocol::ll, 78.8, 10.529},
    {Algorithm::ring, Protocol::ll128, 144.4, 151.5355},
    {Algorithm::ring, Protocol::simple, 282.8, 198.1935},
    {Algorithm::nvls_tree, Protocol::simple, 108.6, 187.871},
};

inline Table four_h100_nodes(uint64_t bytes, bool nvls = true) {
  Table table;
  for (const Line& line : kFourH100Nodes)
    if (nvls || line.algorithm != Algorithm::nvls_tree)
      table.set(line.algorithm, line.protocol, time_of(line, bytes, bytes / (16 * 32) >= 64));
  return table;
}

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

inline Choice ask(const NcclCommunicator& of, uint64_t bytes, Table& table,
                  Collective collective = Collective::all_reduce) {
  return choose_nccl({of, of.digest(), collective, bytes, table.view()});
}

inline uint64_t digest_of(const NcclCommunicator& of, uint64_t bytes, Table& table,
                          Collective collective = Collective::all_reduce) {
  return NcclQuestion{of, of.digest(), collective, bytes, table.view()}.digest();
}

inline bool picks(const Choice& choice, Algorithm algorithm, Protocol protocol) {
  return !choice.abstains() && choice.candidates[0].algorithm == algorithm &&
         choice.candidates[0].protocol == protocol;
}

}  // namespace crosstie::test
