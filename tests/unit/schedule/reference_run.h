// SPDX-License-Identifier: Apache-2.0
// Executes a Schedule with all ranks in one process, in the plainest way, to see that the sums
// are right for real counts. Lanes go on in random order and puts land late and in any order,
// as far as the Schedule's rules allow.
#pragma once
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "schedule/slicer.h"

namespace crosstie::test {

class ReferenceRun {
 public:
  using Vector = std::vector<float>;

  ReferenceRun(const Schedule& schedule, const Slicer& slicer, std::vector<Vector> inputs,
               bool in_place, std::mt19937_64& random);
  // Fails where nothing can go on.
  Status run();
  const Vector& out(uint32_t rank) const { return ranks_[rank].out; }

 private:
  struct Rank {
    Program program;
    Vector in, out, scratch;
    std::vector<std::vector<bool>> landed;  // by flag and chunk
  };
  struct Cursor {
    uint32_t rank = 0, lane = 0, step = 0, chunk = 0;
  };
  struct InFlight {
    const float* from = nullptr;
    float* to = nullptr;
    uint64_t count = 0;
    uint32_t peer = 0, flag = 0, chunk = 0;
  };

  bool go_on(Cursor& cursor);
  void land(size_t which);
  float* at(uint32_t rank, Part part, Place place, uint32_t chunk);
  void raise(uint32_t rank, uint32_t flag, uint32_t chunk) {
    ranks_[rank].landed[flag][chunk] = true;
  }
  bool execute(const Cursor& cursor, const Wait& wait);
  bool execute(const Cursor& cursor, const Put& put);
  bool execute(const Cursor& cursor, const Signal& signal);
  bool execute(const Cursor& cursor, const Copy& copy);
  bool execute(const Cursor& cursor, const Reduce& reduce);

  Schedule::Frame frame_;
  const Slicer& slicer_;
  uint64_t slot_elements_;
  bool in_place_;
  std::mt19937_64& random_;
  std::vector<Rank> ranks_;
  std::vector<Cursor> cursors_;
  std::vector<InFlight> in_flight_;
};

}  // namespace crosstie::test
