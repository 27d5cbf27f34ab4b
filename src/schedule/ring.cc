// SPDX-License-Identifier: Apache-2.0
// Ring AllReduce over all ranks, host by host, so that of a host's ranks only one sends to
// another host and only one receives.
#include <utility>

#include "schedule/ring_pass.h"
#include "schedule/schedule.h"
#include "schedule/stage.h"

namespace crosstie {
namespace {

// The ring's members in order, and where each rank sits among them.
struct RingOrder {
  std::vector<uint32_t> rank_at, position_of;
};

RingOrder host_by_host(const Shape& shape) {
  RingOrder order{{}, std::vector<uint32_t>(shape.ranks())};
  for (const Shape::Host& host : shape.hosts())
    for (const uint32_t rank : host.ranks) {
      order.position_of[rank] = static_cast<uint32_t>(order.rank_at.size());
      order.rank_at.push_back(rank);
    }
  return order;
}

RingSeat seat_of(uint32_t rank, const RingOrder& order) {
  RingSeat seat;
  seat.size = static_cast<uint32_t>(order.rank_at.size());
  seat.position = order.position_of[rank];
  seat.left = order.rank_at[(seat.position + seat.size - 1) % seat.size];
  seat.right = order.rank_at[(seat.position + 1) % seat.size];
  return seat;
}

Program ring_program(uint32_t rank, const RingOrder& order) {
  const RingSeat seat = seat_of(rank, order);
  if (seat.size == 1) return copy_in_to_out();
  Program program;
  program.sources.reserve(2 * size_t{seat.size});
  const uint32_t tie = ring_flags(seat.size);
  add_ring_reduce_scatter(program, next_stage(program, rank, tie), {&seat, 1});
  add_ring_all_gather(next_stage(program, rank, tie), {&seat, 1});
  return program;
}

}  // namespace

Schedule ring_all_reduce(std::shared_ptr<const Shape> shape) {
  Schedule::Frame frame;
  frame.collective = Collective::all_reduce;
  frame.algorithm = Algorithm::ring;
  frame.ranks = shape->ranks();
  frame.largest = nth(0, frame.ranks);
  if (frame.ranks > 1) {
    frame.window = kRingWindow;
    frame.slots = ring_slots(frame.ranks);
    frame.flags = ring_flags(frame.ranks) + 1;
  }
  auto order = std::make_shared<const RingOrder>(host_by_host(*shape));
  return {frame, [order](uint32_t rank) { return ring_program(rank, *order); }};
}

}  // namespace crosstie
