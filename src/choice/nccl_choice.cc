// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/nccl_choice.h"

#include <algorithm>
#include <bit>

#include "base/digest.h"

namespace crosstie {
namespace {

constexpr size_t kNcclAlgorithms = 7;  // those of our words that NCCL has
constexpr size_t kNcclProtocols = 3;

// Tied: at most 1/16 above the least.
bool tied(const Candidate& least, const Candidate& other) {
  return other.predicted * 16 <= least.predicted * 17;
}

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

// Index of the one to run; 0 is NCCL's own.
size_t steadiest(std::span<const Candidate> ranked) {
  for (size_t i = 1; i < ranked.size() && tied(ranked[0], ranked[i]); i++)
    if (ring_or_tree(ranked[i])) return i;
  return 0;
}

size_t shortest(std::span<const Candidate> ranked, const NcclCommunicator& of) {
  size_t pick = 0;
  uint32_t fewest = steps_of(ranked[0].algorithm, of).all();
  for (size_t i = 1; i < ranked.size() && tied(ranked[0], ranked[i]); i++) {
    if (!ring_or_tree(ranked[i])) continue;
    const uint32_t steps = steps_of(ranked[i].algorithm, of).all();
    if (steps < fewest) fewest = steps, pick = i;
  }
  return pick;
}

void pick(const NcclCommunicator& of, Choice& choice) {
  const std::span<const Candidate> ranked = choice.ranked();
  const bool unsteady = ranked[0].algorithm == Algorithm::nvls_tree;
  size_t to_run = 0;
  if (unsteady)
    to_run = steadiest(ranked);
  else if (latency_bound(ranked[0], of))
    to_run = shortest(ranked, of);
  choice.reason = unsteady ? "tied in NCCL's model, and nvls_tree is unsteady on 3 nodes or more"
                           : "tied in NCCL's model, and fewer steps wait for each other";
  if (to_run == 0) choice.count = 0, choice.reason = "NCCL's own pick stands";
  const auto first = choice.candidates.begin();
  std::rotate(first, first + to_run, first + to_run + (to_run != 0));
}

// By time; equal times stay in NCCL's order, where the first wins (up to 2.30).
void insert(Choice& choice, const Candidate& candidate) {
  size_t at = choice.count++;
  for (; at > 0 && candidate.predicted < choice.candidates[at - 1].predicted; at--)
    choice.candidates[at] = choice.candidates[at - 1];
  choice.candidates[at] = candidate;
}

void rank(const NcclCostTable& table, Choice& choice) {
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (!table.has(algorithm, protocol)) continue;
      const float cost = table.at(algorithm, protocol);
      if (cost != kNcclIgnored && cost < kNcclNeverRun)
        insert(choice, {algorithm, protocol, microseconds(cost)});
    }
}

// The least time of the whole table, beyond our words too, is the first candidate's.
bool knows_the_least(const NcclCostTable& table, const Candidate& first) {
  const std::span<const float> entries(table.microseconds, table.size());
  return std::all_of(entries.begin(), entries.end(), [&](float entry) {
    return entry == kNcclIgnored || microseconds(entry) >= first.predicted;
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

uint64_t digest_of(const NcclQuestion& question) {
  Digest digest;
  digest.add(question.communicator_digest).add(question.collective).add(question.bytes);
  digest.add(question.table.algorithms).add(question.table.protocols);
  for (size_t i = 0; i < question.table.size(); i++)
    digest.add(std::bit_cast<uint32_t>(question.table.microseconds[i]));
  return digest.value();
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

Choice choose_nccl(const NcclQuestion& question) {
  Choice choice;
  choice.digest = digest_of(question);
  choice.reason = why_not(question);
  if (!choice.reason.empty()) return choice;
  rank(question.table, choice);
  if (choice.count > 0 && knows_the_least(question.table, choice.candidates[0])) {
    pick(question.communicator, choice);
    return choice;
  }
  choice.count = 0;
  choice.reason = "NCCL's pick is none of the algorithms known here";
  return choice;
}

}  // namespace crosstie
