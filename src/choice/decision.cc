// SPDX-License-Identifier: Apache-2.0
#include "choice/decision.h"

#include <fmt/format.h>

#include <algorithm>

namespace crosstie {
namespace {

Seconds term(const Prediction& prediction, std::string_view name) {
  for (const Term& of : prediction.terms())
    if (of.name == name) return of.time;
  return Seconds(0);
}

// The term by which `slow` loses most to `fast`.
std::string_view largest_difference(const Prediction& slow, const Prediction& fast) {
  std::string_view largest;
  Seconds most(0);
  for (const Term& of : slow.terms()) {
    const Seconds lost = of.time - term(fast, of.name);
    if (lost > most) most = lost, largest = of.name;
  }
  return largest;
}

bool before(const Considered& a, const Considered& b) {
  if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
  return a.prediction.time() < b.prediction.time();
}

}  // namespace

Decider::Decider(const CostModel& cost, const NcclModel& nccl, const SystemFacts& facts,
                 const CostJob& job, Executor executor)
    : cost_(cost), nccl_(nccl), facts_(facts), job_(job), executor_(executor) {}

Considered Decider::consider(const NcclCall& call, Algorithm algorithm, Protocol protocol) const {
  const bool ours = algorithm == Algorithm::hierarchical;
  Considered one{ours ? Executor::crosstie : Executor::nccl, algorithm, protocol};
  if (cost_.can_run(call.collective, algorithm, protocol))
    one.prediction = cost_.predict(call.collective, algorithm, protocol, call.bytes);
  else
    one.why_not = "the cost model does not have it on such a job";
  if (executor_ != Executor::any && executor_ != one.executor)
    one.why_not = "another executor's";
  else if (!ours && one.why_not.empty())
    one.why_not = nccl_.cost(call.collective, algorithm, protocol).why_not;
  if (!ours && one.why_not.empty())
    if (const auto launch = nccl_.launch(call, algorithm, protocol))
      one.channels = launch->channels;
  return one;
}

void Decider::consider_all(const NcclCall& call, Decision& decision) const {
  for (size_t a = 0; a < Names<Algorithm>::all.size(); a++)
    for (size_t p = 0; p < Names<Protocol>::all.size(); p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      const Considered one = consider(call, algorithm, protocol);
      if (!one.prediction.terms().empty()) decision.candidates.push_back(one);
    }
  std::stable_sort(decision.candidates.begin(), decision.candidates.end(), before);
}

// NCCL's own pick stands where none is faster by more than kNoBetter.
void Decider::choose(Decision& decision) const {
  if (!decision.nccl || executor_ == Executor::crosstie) return;
  const Seconds least = decision.candidates[0].prediction.time();
  for (size_t i = 0; i < decision.candidates.size(); i++) {
    const Considered& one = decision.candidates[i];
    if (one.why_not.empty() && one.same(*decision.nccl) &&
        one.prediction.time() <= least * (1 + kNoBetter))
      decision.choice = i;
  }
}

std::string Decider::reason(const Decision& decision) const {
  const Considered& chosen = decision.chosen();
  if (!decision.nccl) return "the least predicted time";
  if (chosen.same(*decision.nccl))
    return decision.choice == 0 ? "NCCL's own pick is the fastest predicted"
                                : "NCCL's own pick stands: nothing is predicted to be more than "
                                  "1 % faster";
  const Seconds gain = decision.nccl->prediction.time() - chosen.prediction.time();
  return fmt::format("{:.0f} us less than NCCL's {}/{}, most of it in {}", gain.count() * 1e6,
                     name(decision.nccl->algorithm), name(decision.nccl->protocol),
                     largest_difference(decision.nccl->prediction, chosen.prediction));
}

std::optional<Decision> Decider::decide(Collective collective, uint64_t bytes) const {
  const NcclCall call{collective, bytes};
  Decision decision{.bytes = bytes};
  consider_all(call, decision);
  if (decision.candidates.empty() || !decision.candidates[0].why_not.empty()) return std::nullopt;
  if (const auto pick = nccl_.pick(call)) {
    decision.nccl = consider(call, pick->algorithm, pick->protocol);
    decision.nccl->channels = pick->channels;
  }
  choose(decision);
  const Algorithm algorithm = decision.chosen().algorithm;
  const bool adds_up = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  decision.bound = bound_of(collective, facts_, job_, bytes, adds_up);
  decision.reason = reason(decision);
  return decision;
}

}  // namespace crosstie
