// SPDX-License-Identifier: Apache-2.0
// What a check found: how bad it is, of what, why we think so, and what to do.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace crosstie {

enum class Severity : uint8_t {
  error,    // fails, or costs half of what there could be
  warning,  // may well cost something
  note,     // to be known; nothing needs to be done
};
template <>
struct Names<Severity> {
  static constexpr std::array<std::string_view, 3> all = {"error", "warning", "note"};
};

struct Finding {
  Severity severity = Severity::note;
  std::string_view check{};            // one word for programs, as "numa-unknown"
  std::string host{};                  // or "HOST and 3 more"; empty: the only one
  std::vector<std::string> devices{};  // of which the same is to be said
  std::string what{}, evidence{}, advice{};
};

// The worst first, otherwise in the order given; findings that differ in their devices only become
// one.
std::vector<Finding> sorted(std::vector<Finding> findings);
bool is_clean(std::span<const Finding> findings);  // nothing worse than a note

// For people.
std::string findings_text(std::span<const Finding> findings);
// For programs: {"schema": schema, "version": …, "findings": […]}.
std::string findings_json(std::span<const Finding> findings, std::string_view schema);

}  // namespace crosstie
