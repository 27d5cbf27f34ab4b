// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuner.h"

#include <bit>

namespace crosstie::nccl {
namespace {

// The one that NCCL would run: the least time, the first of equals.
const Candidate& own_pick(const Choice& choice) {
  const auto ranked = choice.ranked();
  const Candidate& second = ranked[1];
  return second.predicted <= ranked[0].predicted ? second : ranked[0];
}

}  // namespace

Tuner::Tuner(uint64_t id, const NcclCommunicator& communicator, const Environment& environment,
             Logger log)
    : id_(id), communicator_(communicator), digest_(communicator.digest()), log_(log) {
  if (stands_aside(environment)) return;
  mode_ = read_mode(environment);
  log_.info(
      "tuner {}: communicator {:#x}, {} ranks on {} nodes, {} to {} ranks a node, facts {:016x}",
      name(mode_), id_, communicator_.ranks, communicator_.nodes,
      communicator_.fewest_ranks_per_domain, communicator_.most_ranks_per_domain, digest_);
}

// What the user says to NCCL is final. NCCL has applied it before it asks us; a second opinion
// on what is left would surprise.
bool Tuner::stands_aside(const Environment& environment) const {
  for (const char* variable : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const std::string* value = environment.find(variable)) {
      log_.info("tuner stands aside: {}={} is set", variable, *value);
      return true;
    }
  return false;
}

TunerMode Tuner::read_mode(const Environment& environment) const {
  const auto options = read_options<TunerOptions>(kTunerOptions, environment);
  if (options) return options->mode;
  // Whoever set it meant to change what the tuner does; off is the one answer that cannot surprise.
  log_.warn("{}; the tuner stands aside", options.error().text);
  return TunerMode::off;
}

void Tuner::decide(int function, uint64_t bytes, const NcclCostTable& table) {
  const bool known = function >= 0 && function < static_cast<int>(said_.size());
  if (mode_ == TunerMode::off || !known) return;
  const NcclQuestion question{communicator_, digest_, static_cast<Collective>(function), bytes,
                              table};
  const Choice choice = choose_nccl(question);
  if (choice.abstains()) return;
  say_once(question, own_pick(choice), choice);
  if (mode_ == TunerMode::act)
    make_winner(table, choice.candidates[0].algorithm, choice.candidates[0].protocol);
}

void Tuner::say_once(const NcclQuestion& question, const Candidate& instead_of,
                     const Choice& choice) {
  const uint64_t bit = uint64_t{1} << (std::bit_width(question.bytes | 1) - 1);
  auto& said = said_[static_cast<size_t>(question.collective)];
  if (said.fetch_or(bit, std::memory_order_relaxed) & bit) return;
  const Candidate& to_run = choice.candidates[0];
  log_.info("{} {} bytes: {} {}/{} ({:.1f} us) for {}/{} ({:.1f} us): {}; decision {:016x}",
            name(question.collective), question.bytes,
            mode_ == TunerMode::act ? "chose" : "would choose", name(to_run.algorithm),
            name(to_run.protocol), to_run.predicted.count() * 1e6, name(instead_of.algorithm),
            name(instead_of.protocol), instead_of.predicted.count() * 1e6, choice.reason,
            choice.digest);
}

}  // namespace crosstie::nccl
