// SPDX-License-Identifier: Apache-2.0
#include "schedule/atoms.h"

#include <fmt/format.h>

#include <algorithm>

namespace crosstie {

std::string to_text(Part part) {
  return fmt::format("[{}/{}, {}/{})", part.begin, part.of, part.end, part.of);
}

Atoms::Atoms(const std::vector<Program>& programs) {
  for (const Program& program : programs)
    for (const Lane& lane : program.lanes)
      for (const Step& step : lane.steps) {
        if (const Put* put = std::get_if<Put>(&step)) add(put->part);
        if (const Copy* copy = std::get_if<Copy>(&step)) add(copy->part);
        if (const Reduce* reduce = std::get_if<Reduce>(&step)) add(reduce->part);
      }
  std::sort(boundaries_.begin(), boundaries_.end(), less);
  const auto same = [](Fraction a, Fraction b) { return !less(a, b) && !less(b, a); };
  boundaries_.erase(std::unique(boundaries_.begin(), boundaries_.end(), same), boundaries_.end());
}

void Atoms::add(Part part) {
  boundaries_.push_back({part.begin, part.of});
  boundaries_.push_back({part.end, part.of});
}

size_t Atoms::index(uint32_t numerator, uint32_t denominator) const {
  const auto at = std::lower_bound(boundaries_.begin(), boundaries_.end(),
                                   Fraction{numerator, denominator}, less);
  return static_cast<size_t>(at - boundaries_.begin());
}

std::string Atoms::text(size_t atom) const {
  const Fraction begin = boundaries_[atom], end = boundaries_[atom + 1];
  return fmt::format("[{}/{}, {}/{})", begin.numerator, begin.denominator, end.numerator,
                     end.denominator);
}

}  // namespace crosstie
