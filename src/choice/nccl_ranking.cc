// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of floating-point expressions (local.mk): every build gives the
// same answer.
#include "choice/nccl_ranking.h"

#include <algorithm>
#include <bit>

#include "choice/class_choice.h"
#include "cost/nccl/release.h"

namespace crosstie {
namespace {

constexpr uint64_t kSteps = 8;   // of an octave
constexpr size_t kOctaves = 36;  // to 64 GiB; what is larger is decided as there
constexpr int kStepBits = 3;
static_assert(1 << kStepBits == kSteps);

size_t step_of(uint64_t bytes) {
  if (bytes == 0) return 0;
  const int octave = std::bit_width(bytes) - 1;
  const uint64_t step =
      octave >= kStepBits ? bytes >> (octave - kStepBits) : bytes << (kStepBits - octave);
  return std::min(static_cast<uint64_t>(octave) * kSteps + step % kSteps, kOctaves * kSteps - 1);
}

uint64_t least_of(size_t step) {
  const auto octave = static_cast<int>(step / kSteps);
  const uint64_t eighths = kSteps + step % kSteps;
  return octave >= kStepBits ? eighths << (octave - kStepBits) : eighths >> (kStepBits - octave);
}

struct Wanted {
  NcclPair pair;
  Prediction prediction{};
  Preference preference{};
};

std::vector<Wanted> candidates(const CostModel& cost, const CommunicatorClass& of,
                               Collective collective, uint64_t bytes) {
  std::vector<Wanted> all;
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const NcclPair pair{static_cast<Algorithm>(a), static_cast<Protocol>(p)};
      if (why_not(of, pair.algorithm).empty() &&
          cost.can_run(collective, pair.algorithm, pair.protocol))
        all.push_back({pair, cost.predict(collective, pair.algorithm, pair.protocol, bytes)});
    }
  return all;
}

}  // namespace

NcclRanking::NcclRanking(const CostModel& cost, const CommunicatorClass& of) : cost_(cost) {
  for (size_t c = 0; c < kNcclCollectives; c++)
    for (size_t step = 0; step < kOctaves * kSteps; step++)
      orders_.push_back(order(of, static_cast<Collective>(c), least_of(step)));
}

NcclRanking::Order NcclRanking::order(const CommunicatorClass& of, Collective collective,
                                      uint64_t bytes) const {
  auto all = candidates(cost_, of, collective, bytes);
  Seconds least(HUGE_VAL);
  for (const Wanted& one : all) least = std::min(least, one.prediction.time());
  for (Wanted& one : all)
    one.preference = preference(of.policy, one.pair.algorithm, one.prediction, least);
  std::ranges::stable_sort(all, {}, &Wanted::preference);
  Order order;
  for (const Wanted& one : all)
    if (order.count < kKept) order.pairs[order.count++] = one.pair;
  return order;
}

std::span<const NcclPair> NcclRanking::at(Collective collective, uint64_t bytes) const {
  const Order& order =
      orders_[static_cast<size_t>(collective) * kOctaves * kSteps + step_of(bytes)];
  return {order.pairs.data(), order.count};
}

}  // namespace crosstie
