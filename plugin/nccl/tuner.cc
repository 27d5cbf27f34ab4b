// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuner.h"

#include <bit>

#include "base/printable.h"

namespace crosstie::nccl {
namespace {

std::string number_of(std::optional<uint64_t> id) {
  return id ? fmt::format("{:#x}", *id) : "without a number";
}

CommunicatorShape shape_of(const NcclCommunicator& of) {
  return {of.ranks, of.nodes, of.fewest_ranks_per_domain, of.most_ranks_per_domain};
}

// Where NCCL shows no table, every choice may.
bool changes(const Choice& choice) {
  if (choice.count < 2) return !choice.abstains();
  return !choice.candidates[0].same(choice.candidates[1]);
}

}  // namespace

Tuner::Tuner(std::optional<uint64_t> id, const NcclCommunicator& communicator,
             const Environment& environment, Logger log)
    : log_(log),
      share_(id, environment, log),
      name_(share_.name()),
      class_(share_.class_rules().classify(name_, shape_of(communicator))),
      mode_(read_mode(environment)),
      decision_(mode_ == TunerMode::off ? nullptr : share_.decision(communicator, class_)) {
  share_.tell_class(class_.traffic);
  if (!decision_) return;
  // The name comes last: a long one may be cut.
  log_.introduce(
      "tuner {}: communicator {}, {} ranks on {} nodes, {} to {} ranks a node, facts {:016x}, "
      "for {}, class {} by {}, name '{}'",
      name(mode_), number_of(id), communicator.ranks, communicator.nodes,
      communicator.fewest_ranks_per_domain, communicator.most_ranks_per_domain, decision_->digest(),
      decision_->about(), name(class_.traffic), class_.reason, printable(name_));
  // Said, never acted on: one rank that stands aside alone is the hang.
  if (!share_.agrees_on(decision_->digest()))
    log_.warn("ranks of communicator {} decide from different facts: compare the lines of each",
              number_of(id));
}

// What the user says to NCCL is final. NCCL has applied it before it asks us; a second opinion
// on what is left would surprise.
TunerMode Tuner::read_mode(const Environment& environment) const {
  for (const char* variable : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const std::string* value = environment.find(variable)) {
      log_.introduce("tuner stands aside: {}={} is set", variable, *value);
      return TunerMode::off;
    }
  const auto options = read_options<TunerOptions>(kTunerOptions, environment);
  if (options) return options->mode;
  // Whoever set it meant to change what the tuner does; off is the one answer that cannot surprise.
  log_.warn("{}; the tuner stands aside", options.error().text);
  return TunerMode::off;
}

Decided Tuner::decide(int function, uint64_t bytes, uint32_t operations, const NcclCostTable& table,
                      int* channels) {
  const bool known = function >= 0 && function < static_cast<int>(said_.size());
  if (!decision_ || !known) return {};
  const auto collective = static_cast<Collective>(function);
  Choice choice = decision_->choose(collective, bytes, table, operations);
  if (changes(choice)) say_once(collective, bytes, table, choice);
  if (mode_ != TunerMode::act) return {};
  if (choice.channels > 0 && channels != nullptr) *channels = static_cast<int>(choice.channels);
  if (choice.abstains()) return {};
  const Candidate& pick = choice.candidates[0];
  if (table.size() > 0 && !make_winner(table, pick.algorithm, pick.protocol)) return {};
  return pick;
}

void Tuner::say_once(Collective collective, uint64_t bytes, const NcclCostTable& table,
                     Choice& choice) {
  const uint64_t bit = uint64_t{1} << (std::bit_width(bytes | 1) - 1);
  auto& said = said_[static_cast<size_t>(collective)];
  if (said.fetch_or(bit, std::memory_order_relaxed) & bit) return;
  decision_->price(collective, bytes, choice);
  const std::string_view verb = mode_ == TunerMode::act ? "chose" : "would choose";
  const Candidate &to_run = choice.candidates[0], &own = choice.candidates[1];
  const double us = to_run.predicted.count() * 1e6, own_us = own.predicted.count() * 1e6;
  const uint64_t digest = decision_->digest_of(collective, bytes, table);
  if (choice.count > 1)
    log_.info("{} {} bytes: {} {}/{} ({:.1f} us) for {}/{} ({:.1f} us): {}; decision {:016x}",
              name(collective), bytes, verb, name(to_run.algorithm), name(to_run.protocol), us,
              name(own.algorithm), name(own.protocol), own_us, choice.reason, digest);
  else
    log_.info("{} {} bytes: {} {}/{} ({:.1f} us): {}; decision {:016x}", name(collective), bytes,
              verb, name(to_run.algorithm), name(to_run.protocol), us, choice.reason, digest);
}

}  // namespace crosstie::nccl
