// SPDX-License-Identifier: Apache-2.0
#include "choice/decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/nccl/pair.h"

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

// The fastest that its class alone keeps from running; nullptr: none is kept.
const Considered* fastest_kept_out(const Decision& decision, const CommunicatorClass& by) {
  const Considered* fastest = nullptr;
  for (const Considered& one : decision.candidates)
    if (const auto why = why_not(by, one.algorithm); !why.empty() && one.why_not == why)
      if (fastest == nullptr || one.prediction.time() < fastest->prediction.time()) fastest = &one;
  return fastest;
}

// Were it not kept out.
bool would_run(const Considered& out, const Decision& decision, const ClassPolicy& policy) {
  const Seconds least = std::min(out.prediction.time(), decision.candidates[0].prediction.time());
  const auto wanted = [&](const Considered& one) {
    return preference(policy, one.algorithm, one.prediction, least);
  };
  return wanted(out) < wanted(decision.chosen());
}

}  // namespace

std::string_view Decider::why_not_here(const NcclCall& call, const Considered& one) const {
  if (facts_.executor != Executor::any && facts_.executor != one.executor)
    return "another executor's";
  if (!facts_.cost.can_run(call.collective, one.algorithm, one.protocol))
    return "the cost model does not have it on such a job";
  if (one.executor == Executor::crosstie) return "";
  const auto refused = facts_.nccl.cost(call.collective, one.algorithm, one.protocol).why_not;
  return refused.empty() ? why_not(facts_.communicator_class, one.algorithm) : refused;
}

Considered Decider::consider(const NcclCall& call, Algorithm algorithm, Protocol protocol) const {
  const bool ours = algorithm == Algorithm::hierarchical;
  Considered one{ours ? Executor::crosstie : Executor::nccl, algorithm, protocol};
  if (facts_.cost.can_run(call.collective, algorithm, protocol))
    one.prediction = facts_.cost.predict(call.collective, algorithm, protocol, call.bytes);
  one.why_not = why_not_here(call, one);
  if (ours || !one.why_not.empty()) return one;
  if (const auto launch = facts_.nccl.launch(call, algorithm, protocol))
    one.channels = launch->channels;
  if (const uint32_t most = channels_asked(call.bytes); most > 0)
    one.channels = std::min(one.channels, most);
  return one;
}

uint32_t Decider::channels_asked(uint64_t bytes) const {
  if (facts_.nccl.job().collnet) return 0;
  return channels_to_ask(facts_.communicator_class, facts_.job.ranks, bytes);
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

// None also where the cost model does not have it.
std::optional<Considered> Decider::pick_of_nccl(const NcclCall& call,
                                                const Decision& decision) const {
  if (facts_.system.amd_gpus()) return std::nullopt;  // RCCL runs there, and picks otherwise
  const auto pick = facts_.nccl.pick(call);
  if (!pick) return std::nullopt;
  const auto found = std::ranges::find_if(decision.candidates, [&](const Considered& one) {
    return one.algorithm == pick->algorithm && one.protocol == pick->protocol;
  });
  if (found == decision.candidates.end()) return std::nullopt;
  Considered own = *found;
  own.channels = pick->channels;
  return own;
}

void Decider::choose(Decision& decision) const {
  const Seconds least = decision.candidates[0].prediction.time();
  const auto wanted = [&](const Considered& one) {
    return preference(facts_.communicator_class.policy, one.algorithm, one.prediction, least);
  };
  for (size_t i = 1; i < decision.candidates.size(); i++) {
    const Considered& one = decision.candidates[i];
    if (one.why_not.empty() && wanted(one) < wanted(decision.chosen())) decision.choice = i;
  }
}

std::string Decider::against_nccl(const Decision& decision) const {
  const Considered& chosen = decision.chosen();
  if (!decision.nccl) return "the least predicted time";
  const Considered& own = *decision.nccl;
  if (chosen.same(own))
    return decision.choice == 0 ? "NCCL's own pick is the fastest predicted" : "NCCL's own pick";
  const Seconds gain = own.prediction.time() - chosen.prediction.time();
  if (gain <= Seconds(0)) return "the best of what is left";
  return fmt::format("{:.0f} us less than NCCL's {}/{}, most of it in {}", gain.count() * 1e6,
                     name(own.algorithm), name(own.protocol),
                     largest_difference(own.prediction, chosen.prediction));
}

std::string Decider::reason(const Decision& decision) const {
  const CommunicatorClass& of = facts_.communicator_class;
  std::string text = against_nccl(decision);
  const Considered* const out = fastest_kept_out(decision, of);
  if (out != nullptr && would_run(*out, decision, of.policy))
    text = fmt::format("class {}: {}; {}", name(of.traffic), out->why_not, text);
  if (decision.choice > 0)
    text += fmt::format(
        "; class {}: for {}, {:.1f} % slower than the fastest", name(of.traffic),
        name(of.policy.aim),
        100 * (decision.chosen().prediction.time() / decision.candidates[0].prediction.time() - 1));
  if (const uint32_t most = channels_asked(decision.bytes);
      most > 0 && decision.chosen().executor == Executor::nccl)
    text += fmt::format("; class {}: at most {} channels", name(of.traffic), most);
  return text;
}

std::optional<Decision> Decider::decide(Collective collective, uint64_t bytes) const {
  const NcclCall call{collective, bytes};
  Decision decision{.bytes = bytes};
  consider_all(call, decision);
  if (decision.candidates.empty() || !decision.candidates[0].why_not.empty()) return std::nullopt;
  decision.nccl = pick_of_nccl(call, decision);
  choose(decision);
  decision.bound =
      bound_of(collective, facts_.system, facts_.job, bytes, is_nvls(decision.chosen().algorithm));
  decision.reason = reason(decision);
  return decision;
}

}  // namespace crosstie
