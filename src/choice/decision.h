// SPDX-License-Identifier: Apache-2.0
// A decision laid open: all candidates with their terms, what NCCL would run, what the links allow,
// and why.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "choice/class_choice.h"
#include "cost/bound.h"
#include "cost/model.h"
#include "cost/nccl/model.h"

namespace crosstie {

// Who runs it: NCCL, as a tuner can ask of it, or this library; `any`: the better of both.
enum class Executor : uint8_t { nccl, crosstie, any };
template <>
struct Names<Executor> {
  static constexpr std::array<std::string_view, 3> all = {"nccl", "crosstie", "any"};
};

struct Considered {
  Executor executor = Executor::nccl;  // not `any`
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  uint32_t channels = 0;          // 0: not known
  std::string_view why_not = "";  // empty: it may run
  Prediction prediction{};        // where it can run at all

  bool same(const Considered& other) const {
    return executor == other.executor && algorithm == other.algorithm && protocol == other.protocol;
  }
};

struct Decision {
  uint64_t bytes = 0;
  std::vector<Considered> candidates{};  // those that may run first, the fastest before
  size_t choice = 0;                     // index of the one to run
  std::optional<Considered> nccl{};      // NCCL's own pick
  Bound bound{};                         // of switches that add up, where the choice uses them
  std::string reason{};

  const Considered& chosen() const { return candidates[choice]; }
};

// What a decision reads beside collective and bytes. The models must outlive it.
struct DecisionFacts {
  const CostModel& cost;
  const NcclModel& nccl;
  SystemFacts system;
  CostJob job;
  Executor executor = Executor::nccl;
  CommunicatorClass communicator_class{};
};

class Decider {
 public:
  explicit Decider(const DecisionFacts& facts) : facts_(facts) {}

  // None where the executor has nothing for the collective.
  std::optional<Decision> decide(Collective collective, uint64_t bytes) const;

 private:
  Considered consider(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;
  std::string_view why_not_here(const NcclCall& call, const Considered& one) const;
  std::optional<Considered> pick_of_nccl(const NcclCall& call, const Decision& decision) const;
  void consider_all(const NcclCall& call, Decision& decision) const;
  uint32_t channels_asked(uint64_t bytes) const;
  void choose(Decision& decision) const;
  std::string against_nccl(const Decision& decision) const;
  std::string reason(const Decision& decision) const;

  DecisionFacts facts_;
};

}  // namespace crosstie
