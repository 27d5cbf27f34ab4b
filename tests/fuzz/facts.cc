// SPDX-License-Identifier: Apache-2.0
// Texts, each behind its size, are what ranks say of themselves when they meet: a team, or an error
// that names one.
#include "runtime/fields.h"
#include "runtime/team.h"
#include "target.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  std::vector<std::string> facts;
  while (facts.size() < 16) {
    const auto own = take_text(text);
    if (!own) break;
    facts.emplace_back(*own);
  }
  if (facts.empty()) return 0;
  const auto team = Team::make(0, facts);
  if (!team) {
    PROMISE(!team.error().text.empty());
    return 0;
  }
  PROMISE(team->ranks() == static_cast<int>(facts.size()));
  for (int rank = 0; rank < team->ranks(); rank++) {
    PROMISE(!team->name(rank).empty());
    const auto again = unpack_facts(pack(team->facts(rank)));
    PROMISE(again && again->pid == team->facts(rank).pid);
    PROMISE(again->inside == team->facts(rank).inside);
  }
  return 0;
}
