// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/nccl_choice.h"

#include <algorithm>
#include <bit>

#include "base/digest.h"
#include "cost/nccl/release.h"

namespace crosstie {
namespace {

bool ring_or_tree(const Candidate& candidate) {
  return candidate.algorithm == Algorithm::ring || candidate.algorithm == Algorithm::tree;
}

// Steps of an AllReduce that follow each other: inside a node, and between nodes. Both as NCCL's
// model counts them; the tree's chain is as long as the largest node.
struct Steps {
  uint32_t inside, between;
  uint32_t all() const { return inside + between; }
};

Steps steps_of(Algorithm algorithm, const NcclCommunicator& of) {
  if (algorithm == Algorithm::ring) return {2 * (of.ranks - of.nodes), 2 * (of.nodes - 1)};
  const auto depth = static_cast<uint32_t>(std::bit_width(of.nodes)) - 1;
  return {2 * (of.most_ranks_per_domain - 1), 2 * depth};
}

// The least that NCCL can have charged for waiting: NVLink inside the node (PCIe is slower), and
// no latency of the NIC's own.
Seconds waiting(const Candidate& candidate, const NcclCommunicator& of) {
  const auto p = static_cast<size_t>(candidate.protocol);
  const bool ring = candidate.algorithm == Algorithm::ring;
  const NcclLatencies::Of& latency = ring ? of.latencies.ring : of.latencies.tree;
  // With one rank on each node NCCL charges the tree's network step to all.
  const auto& network = of.ranks == of.nodes ? of.latencies.tree : latency;
  const Steps steps = steps_of(candidate.algorithm, of);
  return latency.base[p] + latency.nvlink_step[p] * steps.inside +
         network.network_step[p] * steps.between;
}

bool latency_bound(const Candidate& candidate, const NcclCommunicator& of) {
  const bool known = of.most_ranks_per_domain > 0;
  return known && ring_or_tree(candidate) && waiting(candidate, of) * 2 >= candidate.predicted;
}

// What of a table has a time and words here, in NCCL's order.
struct Times {
  std::array<Candidate, kNcclAlgorithms * kNcclProtocols> all;
  size_t count = 0, least = 0;  // of equals NCCL runs the first, up to 2.30

  const Candidate& own() const { return all[least]; }
  // At most 1/16 above the least.
  bool tied(size_t i) const { return all[i].predicted * 16 <= own().predicted * 17; }
};

Times times_of(const NcclCostTable& table) {
  Times times;
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (!table.has(algorithm, protocol)) continue;
      const float cost = table.at(algorithm, protocol);
      if (cost == kNcclIgnored || cost >= kNcclNeverRun) continue;
      times.all[times.count] = {algorithm, protocol, microseconds(cost)};
      if (times.all[times.count].predicted < times.own().predicted) times.least = times.count;
      times.count++;
    }
  return times;
}

// Which of the tied to run.
size_t steadiest(const Times& times) {
  size_t pick = times.least;
  for (size_t i = 0; i < times.count; i++) {
    const bool better = pick == times.least || times.all[i].predicted < times.all[pick].predicted;
    if (ring_or_tree(times.all[i]) && times.tied(i) && better) pick = i;
  }
  return pick;
}

size_t shortest(const Times& times, const NcclCommunicator& of) {
  const auto before = [&](size_t a, size_t b) {
    const uint32_t steps_a = steps_of(times.all[a].algorithm, of).all();
    const uint32_t steps_b = steps_of(times.all[b].algorithm, of).all();
    if (steps_a != steps_b) return steps_a < steps_b;
    return times.all[a].predicted < times.all[b].predicted;
  };
  size_t pick = times.least;
  for (size_t i = 0; i < times.count; i++)
    if (ring_or_tree(times.all[i]) && times.tied(i) && before(i, pick)) pick = i;
  return pick;
}

Choice pick(const NcclCommunicator& of, const Times& times) {
  Choice choice;
  const bool unsteady = times.own().algorithm == Algorithm::nvls_tree;
  size_t to_run = times.least;
  if (unsteady)
    to_run = steadiest(times);
  else if (latency_bound(times.own(), of))
    to_run = shortest(times, of);
  choice.reason = "NCCL's own pick stands";
  if (to_run == times.least) return choice;
  choice.candidates[0] = times.all[to_run], choice.candidates[1] = times.own();
  choice.count = 2;
  choice.reason = unsteady ? "tied in NCCL's model, and nvls_tree is unsteady on 3 nodes or more"
                           : "tied in NCCL's model, and fewer steps wait for each other";
  return choice;
}

// The least time of the whole table, beyond our words too.
bool is_the_least(const NcclCostTable& table, const Candidate& own) {
  const std::span<const float> entries(table.microseconds, table.size());
  return std::all_of(entries.begin(), entries.end(), [&](float entry) {
    return entry == kNcclIgnored || microseconds(entry) >= own.predicted;
  });
}

std::string_view why_not(const NcclQuestion& question) {
  const NcclCommunicator& of = question.communicator;
  if (question.collective != Collective::all_reduce)
    return "only all_reduce has both rings and trees";
  if (of.nodes < 2 || of.ranks < of.nodes) return "one node: no network to wait for";
  if (of.nodes == 2) return "2 nodes: not without a measurement";
  return untouchable(question.table);
}

}  // namespace

uint64_t NcclCommunicator::digest() const {
  Digest digest;
  digest.add(ranks).add(nodes).add(fewest_ranks_per_domain).add(most_ranks_per_domain);
  for (const NcclLatencies::Of& of : {latencies.tree, latencies.ring})
    for (const auto& by_protocol : {of.base, of.nvlink_step, of.network_step})
      for (const Seconds latency : by_protocol)
        digest.add(std::bit_cast<uint64_t>(latency.count()));
  return digest.value();
}

uint64_t NcclQuestion::digest() const {
  Digest digest;
  digest.add(communicator_digest).add(collective).add(bytes);
  digest.add(table.algorithms).add(table.protocols);
  for (size_t i = 0; i < table.size(); i++)
    digest.add(std::bit_cast<uint32_t>(table.microseconds[i]));
  return digest.value();
}

Choice choose_nccl(const NcclQuestion& question) {
  Choice none;
  none.reason = why_not(question);
  if (!none.reason.empty()) return none;
  const Times times = times_of(question.table);
  if (times.count > 0 && is_the_least(question.table, times.own()))
    return pick(question.communicator, times);
  none.reason = "NCCL's pick is none of the algorithms known here";
  return none;
}

}  // namespace crosstie
