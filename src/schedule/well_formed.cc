// SPDX-License-Identifier: Apache-2.0
#include "schedule/well_formed.h"

#include <map>
#include <utility>

#include "schedule/atoms.h"
#include "schedule/site.h"

namespace crosstie {
namespace {

class Checker {
 public:
  Checker(const Schedule::Frame& frame, const std::vector<Program>& programs)
      : frame_(frame), programs_(programs) {}

  Status check_all();

 private:
  using FlagOf = std::pair<uint32_t, uint32_t>;  // rank, flag

  Status check(const Wait& wait);
  Status check(const Put& put);
  Status check(const Signal& signal) { return check_raise(signal.peer, signal.flag); }
  Status check(const Copy& copy);
  Status check(const Reduce& reduce);

  Status check_raise(uint32_t peer, uint32_t flag);
  Status check_part(Part part) const;
  Status check_place(Place place) const;
  Status check_slot(uint32_t slot) const;

  const Schedule::Frame& frame_;
  const std::vector<Program>& programs_;
  Site site_;
  std::map<FlagOf, Site> waited_, raised_;  // and where
};

Status Checker::check_all() {
  for (site_.rank = 0; site_.rank < programs_.size(); site_.rank++) {
    const std::vector<Lane>& lanes = programs_[site_.rank].lanes;
    for (site_.lane = 0; site_.lane < lanes.size(); site_.lane++) {
      const std::vector<Step>& steps = lanes[site_.lane].steps;
      for (site_.step = 0; site_.step < steps.size(); site_.step++) {
        const Status checked =
            std::visit([&](const auto& s) { return check(s); }, steps[site_.step]);
        if (!checked) return pass(checked, to_text(site_));
      }
    }
  }
  for (const auto& [flag, site] : waited_)
    if (!raised_.contains(flag))
      return fail(Code::internal, "{}: waits for flag {}, which no step raises", to_text(site),
                  flag.second);
  return {};
}

Status Checker::check(const Wait& wait) {
  if (wait.flag >= frame_.flags)
    return fail(Code::internal, "waits for flag {} of {}", wait.flag, frame_.flags);
  waited_.emplace(FlagOf{site_.rank, wait.flag}, site_);
  return {};
}

Status Checker::check(const Put& put) {
  if (const Status from = check_place(put.from); !from) return from;
  if (const Status to = check_slot(put.slot); !to) return to;
  if (const Status part = check_part(put.part); !part) return part;
  return check_raise(put.peer, put.flag);
}

Status Checker::check(const Copy& copy) {
  if (copy.to.space == Space::in) return fail(Code::internal, "writes the caller's input");
  for (const Place place : {copy.from, copy.to})
    if (const Status checked = check_place(place); !checked) return checked;
  return check_part(copy.part);
}

Status Checker::check(const Reduce& reduce) {
  const std::vector<Place>& sources = programs_[site_.rank].sources;
  if (reduce.to.space == Space::in) return fail(Code::internal, "writes the caller's input");
  if (reduce.count == 0 || uint64_t{reduce.first} + reduce.count > sources.size())
    return fail(Code::internal, "reduces sources [{}, +{}) of {}", reduce.first, reduce.count,
                sources.size());
  for (uint32_t i = 0; i < reduce.count; i++)
    if (const Status source = check_place(sources[reduce.first + i]); !source) return source;
  if (const Status to = check_place(reduce.to); !to) return to;
  return check_part(reduce.part);
}

Status Checker::check_raise(uint32_t peer, uint32_t flag) {
  if (peer >= frame_.ranks) return fail(Code::internal, "names rank {} of {}", peer, frame_.ranks);
  if (flag >= frame_.flags)
    return fail(Code::internal, "raises flag {} of {} of rank {}", flag, frame_.flags, peer);
  const auto [other, is_first] = raised_.emplace(FlagOf{peer, flag}, site_);
  if (is_first) return {};
  return fail(Code::internal, "raises flag {} of rank {}, as does {}", flag, peer,
              to_text(other->second));
}

Status Checker::check_part(Part part) const {
  if (!is_proper(part)) return fail(Code::internal, "names no part: {}", to_text(part));
  if (is_longer(part, frame_.largest))
    return fail(Code::internal, "{} is longer than the frame's largest, {}", to_text(part),
                to_text(frame_.largest));
  return {};
}

Status Checker::check_place(Place place) const {
  return place.space == Space::scratch ? check_slot(place.slot) : Status{};
}

Status Checker::check_slot(uint32_t slot) const {
  if (slot >= frame_.slots) return fail(Code::internal, "names slot {} of {}", slot, frame_.slots);
  return {};
}

}  // namespace

Status check_well_formed(const Schedule::Frame& frame, const std::vector<Program>& programs) {
  return Checker(frame, programs).check_all();
}

}  // namespace crosstie
