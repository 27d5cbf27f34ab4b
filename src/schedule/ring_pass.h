// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter and all-gather along a ring: the material of which ring and hierarchical
// AllReduce are made. A ring of n members divides a part into n and passes it on in n − 1
// transfers a pass, each from a member to the slot of the one to its right.
//
// Why chunks need no credits with a window of two: a member that has received its last transfer
// of chunk c − 1 has, hand to hand round the ring, heard from its right neighbour's first put of
// chunk c − 1, which follows all that this neighbour did in chunk c − 2. So the copies of its
// slots that chunk c − 2 used are free when chunk c begins.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "schedule/schedule.h"

namespace crosstie {

inline constexpr uint32_t kRingWindow = 2;

// One rank's seat in one ring.
struct RingSeat {
  // Where a rank's slots and flags for this ring begin.
  struct Numbers {
    uint32_t slot = 0, flag = 0;
  };
  uint32_t size = 1, position = 0;
  uint32_t left = 0, right = 0;     // ranks
  Part part;                        // what the ring reduces
  Place own = kIn;                  // where this rank's contribution lies
  Numbers mine, at_left, at_right;  // left is sent credits, right is sent data
};

// Slots of a pass. Two would do to receive one transfer while the one before is reduced; twice
// that takes up what neighbours differ in pace.
constexpr uint32_t ring_pass_slots(uint32_t size) { return std::min(4u, size - 1); }
// One credit frees the slots of two transfers: half the slots, so that the other half can be
// filled meanwhile. Only slots that a later transfer of the pass needs again are freed.
inline constexpr uint32_t kTransfersPerCredit = 2;
constexpr uint32_t ring_pass_reuses(uint32_t size) { return size - 1 - ring_pass_slots(size); }
constexpr uint32_t ring_pass_credits(uint32_t size) {
  return (ring_pass_reuses(size) + kTransfersPerCredit - 1) / kTransfersPerCredit;
}
// One for each transfer and one for each credit.
constexpr uint32_t ring_pass_flags(uint32_t size) { return size - 1 + ring_pass_credits(size); }
// Both passes.
constexpr uint32_t ring_slots(uint32_t size) { return 2 * ring_pass_slots(size); }
constexpr uint32_t ring_flags(uint32_t size) { return 2 * ring_pass_flags(size); }

// Adds the steps of a pass to `lane`, which is one of `program`'s. Several seats, all in rings
// of one size, go round in step: no ring waits for another to finish.
// After it, the member at position p holds the reduction of the (p + 1)-th of n in `out`.
void add_ring_reduce_scatter(Program& program, Lane& lane, std::span<const RingSeat> seats);
// Takes up there; after it, `out` is complete.
void add_ring_all_gather(Lane& lane, std::span<const RingSeat> seats);

}  // namespace crosstie
