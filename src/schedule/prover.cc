// SPDX-License-Identifier: Apache-2.0
// One greedy run decides: steps block on nothing but flags, and flags only grow, so whatever the
// order in which lanes run, the same steps get done and the same is known before each of them.
#include "schedule/prover.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "schedule/atoms.h"
#include "schedule/happens_before.h"
#include "schedule/symbolic_memory.h"
#include "schedule/well_formed.h"

namespace crosstie {
namespace {

// A lane's program counter.
struct Cursor {
  Site site;
  uint32_t lane = 0;  // over all ranks
  uint32_t chunk = 0;
  Clock clock;
};

class Run {
 public:
  Run(const Schedule::Frame& frame, const std::vector<Program>& programs, const Atoms& atoms,
      ProofOptions options);
  Status run();

 private:
  // Runs the lane until it must wait. Says whether it got on at all.
  Result<bool> advance(Cursor& cursor);
  Status check_that_all_have_ended() const;

  bool is_done(const Cursor& cursor) const { return cursor.chunk == options_.chunks; }
  const std::vector<Step>& steps(const Cursor& cursor) const {
    return programs_[cursor.site.rank].lanes[cursor.site.lane].steps;
  }
  std::deque<Raise>& raises(uint32_t rank, uint32_t flag) {
    return raises_[size_t{rank} * frame_.flags + flag];
  }
  const std::deque<Raise>& raises(uint32_t rank, uint32_t flag) const {
    return raises_[size_t{rank} * frame_.flags + flag];
  }
  // False: the flag is not yet there.
  bool pass_wait(Cursor& cursor, const Wait& wait);
  Status execute(Cursor&, const Wait&) { return {}; }
  Status execute(Cursor& cursor, const Put& put);
  Status execute(Cursor& cursor, const Signal& signal);
  Status execute(Cursor& cursor, const Copy& copy);
  Status execute(Cursor& cursor, const Reduce& reduce);
  Access begin(Cursor& cursor) const {
    return {cursor.site, cursor.chunk, cursor.clock.advance(cursor.lane)};
  }

  const Schedule::Frame& frame_;
  const std::vector<Program>& programs_;
  const ProofOptions options_;
  SymbolicMemory memory_;
  std::vector<Cursor> cursors_;
  std::vector<std::deque<Raise>> raises_;  // of each flag of each rank; they stay where they are
};

Run::Run(const Schedule::Frame& frame, const std::vector<Program>& programs, const Atoms& atoms,
         ProofOptions options)
    : frame_(frame),
      programs_(programs),
      options_(options),
      memory_(frame, atoms, options.chunks, options.in_place),
      raises_(size_t{frame.ranks} * frame.flags) {
  size_t lanes = 0;
  for (const Program& program : programs) lanes += program.lanes.size();
  for (uint32_t rank = 0; rank < programs.size(); rank++)
    for (uint32_t lane = 0; lane < programs[rank].lanes.size(); lane++)
      cursors_.push_back(
          {{rank, lane, 0}, static_cast<uint32_t>(cursors_.size()), 0, Clock(lanes)});
}

Status Run::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Cursor& cursor : cursors_) {
      const Result<bool> advanced = advance(cursor);
      if (!advanced) return pass(advanced, to_text(cursor.site, cursor.chunk));
      moved |= *advanced;
    }
  }
  if (const Status ended = check_that_all_have_ended(); !ended) return ended;
  return memory_.check_all_reduced();
}

Result<bool> Run::advance(Cursor& cursor) {
  bool moved = false;
  while (!is_done(cursor)) {
    if (cursor.site.step == steps(cursor).size()) {
      cursor.site.step = 0;
      cursor.chunk++;
      continue;
    }
    const Step& step = steps(cursor)[cursor.site.step];
    const Wait* wait = std::get_if<Wait>(&step);
    if (wait && !pass_wait(cursor, *wait)) break;
    const Status executed = std::visit([&](const auto& s) { return execute(cursor, s); }, step);
    if (!executed) return pass(executed);
    cursor.site.step++;
    moved = true;
  }
  return moved;
}

bool Run::pass_wait(Cursor& cursor, const Wait& wait) {
  if (wait.lag > cursor.chunk) return true;
  std::deque<Raise>& raised = raises(cursor.site.rank, wait.flag);
  const uint32_t awaited = cursor.chunk - wait.lag;
  if (raised.size() <= awaited) return false;
  cursor.clock.join(raised[awaited].clock);
  raised[awaited].seen.push_back(cursor.clock.advance(cursor.lane));
  return true;
}

// The put reads and writes until its raise is seen; what is known of it before is its beginning.
Status Run::execute(Cursor& cursor, const Put& put) {
  Access access = begin(cursor);
  std::deque<Raise>& raised = raises(put.peer, put.flag);
  raised.push_back({cursor.clock, {}});
  access.end = &raised.back();
  auto values = memory_.read(cursor.site.rank, put.part, put.from, access, cursor.clock);
  if (!values) return pass(values);
  return memory_.write(put.peer, put.part, in_slot(put.slot), std::move(*values), access,
                       cursor.clock);
}

Status Run::execute(Cursor& cursor, const Signal& signal) {
  cursor.clock.advance(cursor.lane);
  raises(signal.peer, signal.flag).push_back({cursor.clock, {}});
  return {};
}

Status Run::execute(Cursor& cursor, const Copy& copy) {
  const Access access = begin(cursor);
  auto values = memory_.read(cursor.site.rank, copy.part, copy.from, access, cursor.clock);
  if (!values) return pass(values);
  return memory_.write(cursor.site.rank, copy.part, copy.to, std::move(*values), access,
                       cursor.clock);
}

Status Run::execute(Cursor& cursor, const Reduce& reduce) {
  const Access access = begin(cursor);
  const uint32_t rank = cursor.site.rank;
  SymbolicMemory::Values sums;
  for (uint32_t i = 0; i < reduce.count; i++) {
    const Place source = programs_[rank].sources[reduce.first + i];
    auto values = memory_.read(rank, reduce.part, source, access, cursor.clock);
    if (!values) return pass(values);
    if (i == 0) {
      sums = std::move(*values);
      continue;
    }
    for (size_t atom = 0; atom < sums.size(); atom++)
      if (const auto twice = sums[atom].add((*values)[atom]))
        return fail(Code::internal, "counts the contribution of rank {} twice in {}", *twice,
                    to_text(reduce.part));
  }
  return memory_.write(rank, reduce.part, reduce.to, std::move(sums), access, cursor.clock);
}

Status Run::check_that_all_have_ended() const {
  for (const Cursor& cursor : cursors_) {
    if (is_done(cursor)) continue;
    const Wait& wait = std::get<Wait>(steps(cursor)[cursor.site.step]);
    return fail(Code::internal, "{}: waits for ever: flag {} stays at {}, below {}",
                to_text(cursor.site, cursor.chunk), wait.flag,
                raises(cursor.site.rank, wait.flag).size(), cursor.chunk + 1 - wait.lag);
  }
  return {};
}

}  // namespace

Status prove(const Schedule& schedule, ProofOptions options) {
  if (schedule.frame().collective != Collective::all_reduce)
    return fail(Code::unsupported, "the prover does not know what {} should result in",
                name(schedule.frame().collective));
  std::vector<Program> programs;
  for (uint32_t rank = 0; rank < schedule.frame().ranks; rank++)
    programs.push_back(schedule.program(rank));
  if (const Status formed = check_well_formed(schedule.frame(), programs); !formed) return formed;
  const Atoms atoms(programs);
  return Run(schedule.frame(), programs, atoms, options).run();
}

}  // namespace crosstie
