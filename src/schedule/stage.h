// SPDX-License-Identifier: Apache-2.0
// Stages: lanes that follow one another in every chunk, so that chunks pass through them as
// through a pipeline. Used by the generators.
#pragma once
#include <cstdint>

#include "schedule/schedule.h"

namespace crosstie {

// Each stage waits for the one before through a flag of this rank's own; the flags are numbered
// from `first_tie`. The last steps of the stage so far must have been added. Later stages come
// first where several can go on: what is nearly done frees others.
inline Lane& next_stage(Program& program, uint32_t rank, uint32_t first_tie) {
  Lane stage;
  if (!program.lanes.empty()) {
    const uint32_t tie = first_tie + static_cast<uint32_t>(program.lanes.size()) - 1;
    program.lanes.back().steps.push_back(Signal{rank, tie});
    stage.priority = program.lanes.back().priority + 1;
    stage.steps.push_back(Wait{tie, 0});
  }
  program.lanes.push_back(std::move(stage));
  return program.lanes.back();
}

// A lone rank has no stages, only its input.
inline Program copy_in_to_out() { return {{Lane{0, {Copy{Part{}, kOut, kIn}}}}, {}}; }

}  // namespace crosstie
