// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/nccl_decision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ranges>

#include "base/digest.h"
#include "choice/class_choice.h"

namespace crosstie {
namespace {

// NCCL makes Ring 1024 times as dear for sums of 8-bit floats over more than 8 ranks, which lose
// too much on their way (src/enqueue.cc); a tuner is not told the type. A ring that is so many
// times as slow as what else may run is fenced: 1024 less what a ring can be faster by.
constexpr float kFence = 64;

// NCCL computes in single precision, some ten operations; the rates that its search for graphs
// tries are 4 % and more apart.
constexpr double kSame = 2e-5;

constexpr std::string_view kNoWords = "an algorithm that is not known here may run",
                           kSwitches =
                               "the network's switches may reduce, of which no time is known",
                           kUnchecked =
                               "NCCL shows no table, and would not check that this may run",
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
  bool any_of(Algorithm algorithm) const {
    return algorithms_ >> static_cast<unsigned>(algorithm) & 1;
  }
  bool all_are_times() const { return times_; }
  bool offer(NcclPair pair) const {
    for (const Entry& entry : all())
      if (entry.pair == pair) return !fenced(entry);
    return false;
  }

 private:
  void add(size_t a, size_t p, float us) {
    if (a >= kNcclAlgorithms || p >= kNcclProtocols) return without_words_ = true, void();
    if (!(us > kNcclWinning)) times_ = false;  // NaN is none either
    algorithms_ |= 1u << a;
    if (count_ == 0 || us < all_[own_].us) own_ = count_;
    all_[count_++] = {{static_cast<Algorithm>(a), static_cast<Protocol>(p)}, us};
  }

  bool fenced(const Entry& entry) const {
    return entry.pair.algorithm == Algorithm::ring && entry.us > kFence * own().us;
  }

  std::array<Entry, kNcclAlgorithms * kNcclProtocols> all_;
  size_t count_ = 0, own_ = 0;
  uint32_t algorithms_ = 0;  // a bit each
  bool without_words_ = false, times_ = true;
};

// Whether switches of the network may reduce, by what NCCL has agreed on over all ranks.
// CollNetDirect is not: a rank whose host has no NVSwitch is not offered it (2.28.9,
// src/graph/tuning.cc), nor is NVLS, but for AllReduce, one with many ranks beside it
// (src/enqueue.cc).
bool network_may_reduce(const Entries& entries, Collective collective, bool one_node) {
  return entries.any_of(Algorithm::collnet_chain) ||
         (collective == Collective::all_reduce && !one_node && entries.any_of(Algorithm::nvls));
}

// Of what has no words here no time is known: whether it is better must not depend on a rank's own
// times.
std::string_view why_left_alone(const NcclCostTable& table, const Entries& entries,
                                Collective collective, bool one_node) {
  if (table.size() == 0) return {};
  if (entries.any_without_words()) return kNoWords;
  if (entries.all().empty()) return kNothing;
  if (network_may_reduce(entries, collective, one_node)) return kSwitches;
  return entries.all_are_times() ? std::string_view() : untouchable(table);
}

bool shows(const Entries& entries, const NcclModel& nccl, const NcclCall& call) {
  // Simple's and NVLS's tell systems apart soonest.
  for (const Entry& entry : std::views::reverse(entries.all())) {
    const auto time = nccl.time(call, entry.pair.algorithm, entry.pair.protocol);
    if (!time || std::abs(entry.us - time->count() * 1e6) > kSame * entry.us) return false;
  }
  return !entries.all().empty();
}

// All that NCCL 2.21 has wherever it runs; it takes the rest from a tuner without a look at whether
// it may run.
bool runs_anywhere(NcclPair pair) {
  const bool anywhere = pair.algorithm == Algorithm::ring || pair.algorithm == Algorithm::tree;
  return anywhere && pair.protocol != Protocol::ll128;
}

const NcclPair* first_that_may_run(std::span<const NcclPair> order, const Entries& entries) {
  for (const NcclPair& pair : order)
    if (entries.all().empty() || entries.offer(pair)) return &pair;
  return nullptr;
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
  if (communicator.nodes == 0 || communicator.ranks < std::max(2u, communicator.nodes)) return;
  if (profile.system)
    add_named(profile, of);
  else
    add_built_in(profile, of);
}

void NcclDecision::add_named(const Profile& profile, const CommunicatorClass& of) {
  const NcclCommunicator& c = communicator_;
  const uint32_t gpus = std::max(1u, profile.system->gpus);
  const SystemFacts facts = profile.system->of_hosts((c.most_ranks_per_domain + gpus - 1) / gpus);
  about_ = profile.name;
  if (c.nodes > 1 && facts.nics == 0) return about_ += ", which has no NIC", void();
  systems_.push_back({fmt::format("the least time predicted on {}", profile.name), std::nullopt,
                      NcclRanking(CostModel(profile.values, facts, job()), of)});
}

void NcclDecision::add_built_in(const Profile& profile, const CommunicatorClass& of) {
  about_ = "no system that is known";
  if (communicator_.nodes > 1) return;
  const auto release = release_of(communicator_.constants);
  if (!release) return;
  for (const KnownSystem& system : known_systems(*release, 1, communicator_.ranks))
    systems_.push_back({fmt::format("the least time predicted on {}, whose times NCCL's table has",
                                    system.machines),
                        system.nccl,
                        NcclRanking(CostModel(profile.values, system.facts, job()), of)});
  if (!systems_.empty())
    about_ = fmt::format("one of {} systems, by NCCL's table", systems_.size());
}

Choice NcclDecision::choose(Collective collective, uint64_t bytes, const NcclCostTable& table,
                            uint32_t operations) const {
  Choice choice = pick({collective, bytes, operations}, table);
  choice.channels = budget_at(bytes, table);
  return choice;
}

Choice NcclDecision::pick(const NcclCall& call, const NcclCostTable& table) const {
  Choice choice;
  const Entries entries(table);
  choice.reason = why_left_alone(table, entries, call.collective, communicator_.nodes == 1);
  if (!choice.reason.empty()) return choice;
  const NcclPair* to_run = nullptr;
  choice.reason = kUnknown;
  for (const System& system : systems_) {
    const NcclPair* pair =
        first_that_may_run(system.ranking.at(call.collective, call.bytes), entries);
    if (pair && to_run && *pair == *to_run) continue;  // whether it is that one changes nothing
    if (system.nccl && !shows(entries, *system.nccl, call)) continue;
    if (pair == nullptr || to_run) {
      choice.reason = pair ? kTorn : kNothing;
      return choice;
    }
    to_run = pair, choice.reason = system.reason;
  }
  if (to_run == nullptr) return choice;
  if (entries.all().empty() && !runs_anywhere(*to_run)) {
    choice.reason = kUnchecked;
    return choice;
  }
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
  if (table.size() == 0) return 0;
  const uint32_t channels = channels_to_ask(class_, communicator_.ranks, bytes);
  if (channels == 0) return 0;
  const Entries entries(table);
  const bool collnet =
      entries.any_of(Algorithm::collnet_direct) || entries.any_of(Algorithm::collnet_chain);
  return collnet ? 0 : channels;
}

}  // namespace crosstie
