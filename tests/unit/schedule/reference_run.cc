// SPDX-License-Identifier: Apache-2.0
#include "reference_run.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace crosstie::test {
namespace {

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

}  // namespace

ReferenceRun::ReferenceRun(const Schedule& schedule, const Slicer& slicer,
                           std::vector<Vector> inputs, bool in_place, std::mt19937_64& random)
    : frame_(schedule.frame()),
      slicer_(slicer),
      slot_elements_(slicer.most(frame_.largest)),
      in_place_(in_place),
      random_(random) {
  for (uint32_t r = 0; r < frame_.ranks; r++) {
    Rank rank;
    rank.program = schedule.program(r);
    rank.out = in_place ? inputs[r] : Vector(inputs[r].size(), kUnwritten);
    if (!in_place) rank.in = std::move(inputs[r]);
    rank.scratch.assign(slot_elements_ * frame_.slots * frame_.window, kUnwritten);
    rank.landed.assign(frame_.flags, std::vector<bool>(slicer.chunks()));
    for (uint32_t lane = 0; lane < rank.program.lanes.size(); lane++)
      cursors_.push_back({r, lane, 0, 0});
    ranks_.push_back(std::move(rank));
  }
}

Status ReferenceRun::run() {
  while (!cursors_.empty()) {
    if (!in_flight_.empty() && random_() % 2) land(random_() % in_flight_.size());
    size_t tried = 0, i = random_() % cursors_.size();
    while (tried < cursors_.size() && !go_on(cursors_[i])) {
      i = (i + 1) % cursors_.size();
      tried++;
    }
    if (tried == cursors_.size() && in_flight_.empty())
      return fail(Code::internal, "{} lanes wait for ever", cursors_.size());
    std::erase_if(cursors_, [&](const Cursor& c) { return c.chunk == slicer_.chunks(); });
  }
  return {};
}

bool ReferenceRun::go_on(Cursor& cursor) {
  const std::vector<Step>& steps = ranks_[cursor.rank].program.lanes[cursor.lane].steps;
  if (!std::visit([&](const auto& step) { return execute(cursor, step); }, steps[cursor.step]))
    return false;
  if (++cursor.step == steps.size()) cursor = {cursor.rank, cursor.lane, 0, cursor.chunk + 1};
  return true;
}

void ReferenceRun::land(size_t which) {
  std::swap(in_flight_[which], in_flight_.back());
  const InFlight put = in_flight_.back();
  in_flight_.pop_back();
  std::copy_n(put.from, put.count, put.to);
  raise(put.peer, put.flag, put.chunk);
}

float* ReferenceRun::at(uint32_t rank, Part part, Place place, uint32_t chunk) {
  Rank& r = ranks_[rank];
  if (place.space == Space::scratch)
    return r.scratch.data() + (place.slot * frame_.window + chunk % frame_.window) * slot_elements_;
  Vector& memory = place.space == Space::in && !in_place_ ? r.in : r.out;
  return memory.data() + slicer_.range(part, chunk).first;
}

// The counter of the schedule's rules: as many as have come without a gap.
bool ReferenceRun::execute(const Cursor& cursor, const Wait& wait) {
  const std::vector<bool>& landed = ranks_[cursor.rank].landed[wait.flag];
  const auto count = std::find(landed.begin(), landed.end(), false) - landed.begin();
  return count + int64_t{wait.lag} >= int64_t{cursor.chunk} + 1;
}

bool ReferenceRun::execute(const Cursor& cursor, const Put& put) {
  in_flight_.push_back({at(cursor.rank, put.part, put.from, cursor.chunk),
                        at(put.peer, put.part, in_slot(put.slot), cursor.chunk),
                        slicer_.range(put.part, cursor.chunk).count, put.peer, put.flag,
                        cursor.chunk});
  return true;
}

bool ReferenceRun::execute(const Cursor& cursor, const Signal& signal) {
  raise(signal.peer, signal.flag, cursor.chunk);
  return true;
}

bool ReferenceRun::execute(const Cursor& cursor, const Copy& copy) {
  const float* from = at(cursor.rank, copy.part, copy.from, cursor.chunk);
  float* to = at(cursor.rank, copy.part, copy.to, cursor.chunk);
  if (to != from) std::copy_n(from, slicer_.range(copy.part, cursor.chunk).count, to);
  return true;
}

bool ReferenceRun::execute(const Cursor& cursor, const Reduce& reduce) {
  const std::vector<Place>& sources = ranks_[cursor.rank].program.sources;
  const uint64_t count = slicer_.range(reduce.part, cursor.chunk).count;
  Vector sums(count, 0);
  for (uint32_t s = 0; s < reduce.count; s++) {
    const float* source = at(cursor.rank, reduce.part, sources[reduce.first + s], cursor.chunk);
    for (uint64_t i = 0; i < count; i++) sums[i] += source[i];
  }
  std::copy(sums.begin(), sums.end(), at(cursor.rank, reduce.part, reduce.to, cursor.chunk));
  return true;
}

}  // namespace crosstie::test
