// SPDX-License-Identifier: Apache-2.0
// The intervals between all the boundaries of the parts that Programs name: no step tells one
// end of an atom from the other, so what holds for an atom holds for each of its elements. Of
// the prover.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace crosstie {

inline bool is_proper(Part part) { return part.begin < part.end && part.end <= part.of; }
// Products of two uint32_t fit.
inline bool is_same(Part a, Part b) {
  return uint64_t{a.begin} * b.of == uint64_t{b.begin} * a.of &&
         uint64_t{a.end} * b.of == uint64_t{b.end} * a.of;
}
inline bool is_longer(Part a, Part b) {
  return uint64_t{a.end - a.begin} * b.of > uint64_t{b.end - b.begin} * a.of;
}
std::string to_text(Part part);

class Atoms {
 public:
  struct Interval {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
  };

  // All parts that the Programs name are proper.
  explicit Atoms(const std::vector<Program>& programs);

  size_t count() const { return boundaries_.size() - 1; }
  Interval of(Part part) const { return {index(part.begin, part.of), index(part.end, part.of)}; }
  std::string text(size_t atom) const;

 private:
  struct Fraction {
    uint32_t numerator = 0, denominator = 1;
  };
  static bool less(Fraction a, Fraction b) {
    return uint64_t{a.numerator} * b.denominator < uint64_t{b.numerator} * a.denominator;
  }
  void add(Part part);
  size_t index(uint32_t numerator, uint32_t denominator) const;

  std::vector<Fraction> boundaries_ = {{0, 1}, {1, 1}};  // ascending
};

}  // namespace crosstie
