// SPDX-License-Identifier: Apache-2.0
#include "schedule/ring_pass.h"

namespace crosstie {
namespace {

// One pass through one seat. Both ends of a transfer number its slot and its flags alike.
class SeatPass {
 public:
  static SeatPass reduce_scatter(const RingSeat& seat) { return {seat, 0}; }
  static SeatPass all_gather(const RingSeat& seat) { return {seat, 1}; }

  void send(Lane& lane, uint32_t t, Place from) const {
    if (t >= slots() && (t - slots()) % kTransfersPerCredit == 0)
      lane.steps.push_back(Wait{credit(seat_.mine, (t - slots()) / kTransfersPerCredit), 0});
    lane.steps.push_back(
        Put{seat_.right, data(seat_.at_right, t), part_at(t), from, slot(seat_.at_right, t)});
  }
  // Waits, and returns the slot to which the part has come.
  Place receive(Lane& lane, uint32_t t) const {
    lane.steps.push_back(Wait{data(seat_.mine, t), 0});
    return in_slot(slot(seat_.mine, t));
  }
  Part received(uint32_t t) const { return part_at(t + 1); }
  void release(Lane& lane, uint32_t t) const {
    const uint32_t reuses = ring_pass_reuses(seat_.size);
    const bool frees_all = t % kTransfersPerCredit == kTransfersPerCredit - 1 || t + 1 == reuses;
    if (t < reuses && frees_all)
      lane.steps.push_back(Signal{seat_.left, credit(seat_.at_left, t / kTransfersPerCredit)});
  }

 private:
  SeatPass(const RingSeat& seat, uint32_t pass) : seat_(seat), pass_(pass) {}

  uint32_t slots() const { return ring_pass_slots(seat_.size); }
  // Sent in transfer t, received in transfer t − 1. The all-gather begins with the part that the
  // reduce-scatter has left here.
  Part part_at(uint32_t t) const {
    return nth_of(seat_.part, (seat_.position + pass_ + seat_.size - t) % seat_.size, seat_.size);
  }
  uint32_t slot(RingSeat::Numbers at, uint32_t t) const {
    return at.slot + pass_ * slots() + t % slots();
  }
  uint32_t data(RingSeat::Numbers at, uint32_t t) const {
    return at.flag + pass_ * ring_pass_flags(seat_.size) + t;
  }
  uint32_t credit(RingSeat::Numbers at, uint32_t number) const {
    return data(at, seat_.size - 1 + number);
  }

  const RingSeat& seat_;
  uint32_t pass_;
};

// A transfer is a put, a wait and a reduction or copy; a credit is a signal and a wait. And one
// step may follow that ties the pass to the next stage.
void reserve_pass(Lane& lane, std::span<const RingSeat> seats) {
  const size_t size = seats.front().size;
  const size_t steps = 3 * (size - 1) + 2 * ring_pass_credits(seats.front().size);
  lane.steps.reserve(lane.steps.size() + seats.size() * steps + 1);
}

}  // namespace

void add_ring_reduce_scatter(Program& program, Lane& lane, std::span<const RingSeat> seats) {
  reserve_pass(lane, seats);
  for (uint32_t t = 0; t + 1 < seats.front().size; t++) {
    for (const RingSeat& seat : seats)
      SeatPass::reduce_scatter(seat).send(lane, t, t == 0 ? seat.own : kOut);
    for (const RingSeat& seat : seats) {
      const auto pass = SeatPass::reduce_scatter(seat);
      const auto first = static_cast<uint32_t>(program.sources.size());
      program.sources.insert(program.sources.end(), {seat.own, pass.receive(lane, t)});
      lane.steps.push_back(Reduce{pass.received(t), kOut, first, 2});
      pass.release(lane, t);
    }
  }
}

void add_ring_all_gather(Lane& lane, std::span<const RingSeat> seats) {
  reserve_pass(lane, seats);
  for (uint32_t t = 0; t + 1 < seats.front().size; t++) {
    for (const RingSeat& seat : seats) SeatPass::all_gather(seat).send(lane, t, kOut);
    for (const RingSeat& seat : seats) {
      const auto pass = SeatPass::all_gather(seat);
      const Place slot = pass.receive(lane, t);
      lane.steps.push_back(Copy{pass.received(t), kOut, slot});
      pass.release(lane, t);
    }
  }
}

}  // namespace crosstie
