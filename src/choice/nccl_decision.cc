// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/nccl_decision.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/digest.h"
#include "choice/class_choice.h"

namespace crosstie {
namespace {

bool offers(const NcclCostTable& table, Algorithm algorithm) {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    if (table.has(algorithm, protocol) && table.at(algorithm, protocol) != kNcclIgnored)
      return true;
  return false;
}

// A pair that NCCL takes for so many times as slow as its own pick it means to keep from running:
// sums of 8-bit floats on long rings are 1024 times as dear (src/enqueue.cc). No model is as wrong.
constexpr float kFence = 64;

// NCCL computes in single precision.
constexpr double kSame = 2e-5;

constexpr std::string_view kNoWords = "an algorithm that is not known here may run",
                           kUnknown = "no system is known: none named, none shown by NCCL's table",
                           kTorn =
                               "systems with the times of NCCL's table would run it differently",
                           kNothing = "of what is known to be fast here nothing may run";

// What of a table may run, in NCCL's order; its own pick is the first of the least times.
struct Entry {
  NcclPair pair;
  float us;
};

class Entries {
 public:
  explicit Entries(const NcclCostTable& table) {
    const float* us = table.microseconds;
    if (table.size() == 0) return;
    for (size_t a = 0; a < static_cast<size_t>(table.algorithms); a++)
      for (size_t p = 0; p < static_cast<size_t>(table.protocols); p++, us++)
        if (*us != kNcclIgnored) add(a, p, *us);
  }

  std::span<const Entry> all() const { return {all_.data(), count_}; }
  const Entry& own() const { return all_[own_]; }
  bool any_without_words() const { return without_words_; }
  bool has(NcclPair pair) const {
    for (const Entry& entry : all())
      if (entry.pair == pair) return entry.us < kFence * own().us;
    return false;
  }

 private:
  void add(size_t a, size_t p, float us) {
    if (a >= kNcclAlgorithms || p >= kNcclProtocols) return without_words_ = true, void();
    if (count_ == 0 || us < all_[own_].us) own_ = count_;
    all_[count_++] = {{static_cast<Algorithm>(a), static_cast<Protocol>(p)}, us};
  }

  std::array<Entry, kNcclAlgorithms * kNcclProtocols> all_;
  size_t count_ = 0, own_ = 0;
  bool without_words_ = false;
};

// Of what has no words here no time is known: whether it is better must not depend on a rank's own
// times.
std::string_view why_left_alone(const NcclCostTable& table, const Entries& entries) {
  if (table.size() == 0) return {};
  if (entries.any_without_words()) return kNoWords;
  return entries.all().empty() ? kNothing : untouchable(table);
}

// Whether all ranks have the same time of the pair in their tables.
bool agreed(const NcclJob& job, NcclPair pair) {
  return job.nodes == 1 || (pair.algorithm != Algorithm::ring && pair.protocol != Protocol::ll);
}

// The table is that of the system: no entry that all ranks share says otherwise, and one at least
// says so.
bool shows(const Entries& entries, const NcclModel& nccl, const NcclCall& call) {
  bool shown = false;
  for (const Entry& entry : entries.all()) {
    if (!agreed(nccl.job(), entry.pair)) continue;
    const auto time = nccl.time(call, entry.pair.algorithm, entry.pair.protocol);
    if (!time || std::abs(entry.us - time->count() * 1e6) > kSame * entry.us) return false;
    shown = true;
  }
  return shown;
}

// Without a table NCCL passes over what may not run.
const NcclPair* first_that_may_run(std::span<const NcclPair> order, const Entries& entries) {
  for (const NcclPair& pair : order)
    if (entries.all().empty() || entries.has(pair)) return &pair;
  return nullptr;
}

// NICs of all hosts of an NVLink domain serve it.
SystemFacts of_a_node(SystemFacts host, uint32_t ranks_per_node) {
  const uint32_t hosts = (ranks_per_node + host.gpus - 1) / std::max(1u, host.gpus);
  host.gpus *= hosts, host.nics *= hosts;
  return host;
}

}  // namespace

uint64_t NcclCommunicator::digest() const {
  return Digest()
      .add(ranks)
      .add(nodes)
      .add(fewest_ranks_per_domain)
      .add(most_ranks_per_domain)
      .add(constants.digest())
      .value();
}

NcclDecision::NcclDecision(const NcclCommunicator& communicator, const CommunicatorClass& of,
                           const Profile& profile)
    : communicator_(communicator),
      class_(of),
      digest_(Digest().add(communicator.digest()).add(of.digest()).add(profile.digest()).value()) {
  if (communicator.nodes == 0 || communicator.ranks <= communicator.nodes / 2) return;
  if (profile.system)
    add_named(profile, of);
  else
    add_built_in(profile, of);
}

void NcclDecision::add_named(const Profile& profile, const CommunicatorClass& of) {
  const NcclCommunicator& c = communicator_;
  const uint32_t mean = (c.ranks + c.nodes - 1) / c.nodes;
  const SystemFacts facts = of_a_node(*profile.system, std::max(mean, c.most_ranks_per_domain));
  about_ = profile.name;
  systems_.push_back({fmt::format("the least time predicted on {}", profile.name), std::nullopt,
                      NcclRanking(CostModel(profile.values, facts, job()), of)});
}

// NCCL's graphs, and with them its times, are known for nodes that are alike.
void NcclDecision::add_built_in(const Profile& profile, const CommunicatorClass& of) {
  const NcclCommunicator& c = communicator_;
  const auto release = release_of(c.constants);
  if (release && c.fewest_ranks_per_domain == c.most_ranks_per_domain)
    for (const KnownSystem& system : known_systems(*release, c.nodes, c.most_ranks_per_domain))
      systems_.push_back(
          {fmt::format("the least time predicted on {}, whose times NCCL's table has",
                       system.machines),
           system.nccl, NcclRanking(CostModel(profile.values, system.facts, job()), of)});
  about_ = systems_.empty() ? "no system that is known"
                            : fmt::format("one of {} systems, by NCCL's table", systems_.size());
}

Choice NcclDecision::choose(Collective collective, uint64_t bytes,
                            const NcclCostTable& table) const {
  Choice choice = pick(collective, bytes, table);
  choice.channels = budget_at(bytes, table);
  return choice;
}

Choice NcclDecision::pick(Collective collective, uint64_t bytes, const NcclCostTable& table) const {
  Choice choice;
  const Entries entries(table);
  choice.reason = why_left_alone(table, entries);
  if (!choice.reason.empty()) return choice;
  const NcclPair* to_run = nullptr;
  choice.reason = kUnknown;
  for (const System& system : systems_) {
    if (system.nccl && !shows(entries, *system.nccl, {collective, bytes})) continue;
    const NcclPair* pair = first_that_may_run(system.ranking.at(collective, bytes), entries);
    if (pair == nullptr || (to_run && !(*pair == *to_run))) {
      choice.reason = pair ? kTorn : kNothing;
      return choice;
    }
    to_run = pair, choice.reason = system.reason;
  }
  if (to_run == nullptr) return choice;
  choice.candidates[choice.count++] = {to_run->algorithm, to_run->protocol};
  if (entries.all().empty()) return choice;
  const NcclPair own = entries.own().pair;
  choice.candidates[choice.count++] = {own.algorithm, own.protocol};
  return choice;
}

void NcclDecision::price(Collective collective, uint64_t bytes, Choice& choice) const {
  const auto by = std::ranges::find_if(
      systems_, [&](const System& system) { return choice.reason.data() == system.reason.data(); });
  for (Candidate& candidate : std::span(choice.candidates.data(), choice.count))
    candidate.predicted =
        by->ranking.predicted(collective, {candidate.algorithm, candidate.protocol}, bytes);
}

uint64_t NcclDecision::digest_of(Collective collective, uint64_t bytes,
                                 const NcclCostTable& table) const {
  Digest digest;
  digest.add(digest_).add(collective).add(bytes).add(table.algorithms).add(table.protocols);
  for (size_t i = 0; i < table.size(); i++)
    digest.add(std::bit_cast<uint32_t>(table.microseconds[i]));
  return digest.value();
}

// What a tuner writes replaces NCCL's own number up to 2.30: it is asked for only where NCCL would
// take no fewer. For CollNet nothing bounds it from above, so it is left alone there.
uint32_t NcclDecision::budget_at(uint64_t bytes, const NcclCostTable& table) const {
  const bool collnet =
      offers(table, Algorithm::collnet_direct) || offers(table, Algorithm::collnet_chain);
  if (table.size() == 0 || collnet) return 0;
  return channels_to_ask(class_, communicator_.ranks, bytes);
}

}  // namespace crosstie
