// SPDX-License-Identifier: Apache-2.0
// The memory of all ranks in a symbolic execution: which ranks' contributions each atom holds,
// and who may be reading or writing it. Of the prover.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "schedule/atoms.h"
#include "schedule/happens_before.h"
#include "schedule/schedule.h"

namespace crosstie {

// The set of ranks whose input is in a sum. Empty: nothing was ever written there.
class Contributions {
 public:
  Contributions() = default;
  static Contributions of(uint32_t rank, uint32_t ranks);

  bool empty() const { return words_.empty(); }
  // Returns a rank that is in both, if any; the sum would count it twice.
  std::optional<uint32_t> add(const Contributions& other);
  std::optional<uint32_t> first_missing(uint32_t ranks) const;

 private:
  std::vector<uint64_t> words_;
};

// Reads and writes of one piece of memory, as far as a later one may still meet them.
class Traces {
 public:
  Status read(const Access& access, const Clock& clock);
  Status write(const Access& access, const Clock& clock);

 private:
  std::optional<Access> write_;
  std::vector<Access> reads_;
};

class SymbolicMemory {
 public:
  // One value for each atom of a part.
  using Values = std::vector<Contributions>;

  SymbolicMemory(const Schedule::Frame& frame, const Atoms& atoms, uint32_t chunks, bool in_place);

  // `clock` is what is known where the access begins. Errors say what is wrong and where else,
  // not at which step.
  Result<Values> read(uint32_t rank, Part part, Place place, const Access& access,
                      const Clock& clock);
  Status write(uint32_t rank, Part part, Place place, Values values, const Access& access,
               const Clock& clock);
  // Every atom of every rank's `out` holds every rank's contribution.
  Status check_all_reduced() const;

 private:
  struct Cell {
    Contributions value;
    Traces traces;
  };
  struct Slot {
    Part part;
    uint32_t chunk = 0;
    Values values;
    Traces traces;
  };
  Cell& out(uint32_t rank, uint32_t chunk, size_t atom) {
    return outs_[(size_t{rank} * chunks_ + chunk) * atoms_.count() + atom];
  }
  Slot& slot(uint32_t rank, uint32_t slot, uint32_t chunk) {
    return slots_[(size_t{rank} * frame_.slots + slot) * frame_.window + chunk % frame_.window];
  }
  Result<Values> read_slot(uint32_t rank, Part part, uint32_t number, const Access& access,
                           const Clock& clock);
  Status write_slot(uint32_t rank, Part part, uint32_t number, Values values, const Access& access,
                    const Clock& clock);

  const Schedule::Frame frame_;
  const Atoms& atoms_;
  const uint32_t chunks_;
  const bool in_place_;
  std::vector<Cell> outs_;
  std::vector<Slot> slots_;
};

}  // namespace crosstie
