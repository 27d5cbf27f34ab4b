// SPDX-License-Identifier: Apache-2.0
#include "mutants.h"

#include <algorithm>
#include <utility>

namespace crosstie::test {
namespace {

class Spoiler {
 public:
  Spoiler(const Schedule& schedule, uint32_t rank) : schedule_(schedule), site_{rank, 0, 0} {}

  std::vector<Mutant> all() {
    const Program program = schedule_.program(site_.rank);
    for (site_.lane = 0; site_.lane < program.lanes.size(); site_.lane++) {
      const std::vector<Step>& steps = program.lanes[site_.lane].steps;
      for (site_.step = 0; site_.step < steps.size(); site_.step++) {
        leave_out();
        std::visit([&](const auto& step) { spoil(step); }, steps[site_.step]);
      }
    }
    return std::move(mutants_);
  }

 private:
  void add(const std::string& what, std::function<void(Program&)> change) {
    mutants_.push_back({fmt::format("{}: {}", to_text(site_), what),
                        changed(schedule_, site_.rank, std::move(change)), false, false});
  }
  template <class Kind>
  void add_step(const std::string& what, const Kind& replacement) {
    add(what, [site = site_, replacement](Program& program) {
      program.lanes[site.lane].steps[site.step] = replacement;
    });
  }
  void leave_out() {
    add("left out", [site = site_](Program& program) {
      auto& steps = program.lanes[site.lane].steps;
      steps.erase(steps.begin() + site.step);
    });
  }

  static Part next(Part part) {
    const uint32_t length = part.end - part.begin;
    return {part.end % part.of, part.end % part.of + length, part.of};
  }

  void spoil(const Wait& wait) { add_step("waits for less", Wait{wait.flag, wait.lag + 1}); }
  void spoil(const Signal& signal) {
    add_step("raises another flag", Signal{signal.peer, signal.flag + 1});
  }
  void spoil(const Put& put) {
    Put other = put;
    other.slot = (put.slot + 1) % (schedule_.frame().slots + 1);
    add_step("puts to another slot", other);
    other = put;
    other.flag = (put.flag + 1) % schedule_.frame().flags;
    add_step("raises another flag", other);
    other = put;
    other.part = next(put.part);
    add_step("puts another part", other);
    other = put;
    other.peer = (put.peer + 1) % schedule_.frame().ranks;
    add_step("puts to another rank", other);
    other = put;
    other.from.space = put.from.space == Space::in ? Space::out : Space::in;
    add_step("puts from other memory", other);
    mutants_.back().harmless_in_place = put.from.space != Space::scratch;
  }
  void spoil(const Copy& copy) {
    Copy other = copy;
    other.part = next(copy.part);
    add_step("copies another part", other);
  }
  void spoil(const Reduce& reduce) {
    for (uint32_t i = 0; i < reduce.count; i++)
      add(fmt::format("source {} taken twice", i), [=](Program& program) {
        program.sources[reduce.first + (i + 1) % reduce.count] = program.sources[reduce.first + i];
      });
    add_step("last source left out",
             Reduce{reduce.part, reduce.to, reduce.first, reduce.count - 1});
    Reduce other = reduce;
    other.part = next(reduce.part);
    add_step("reduces another part", other);
    add("done twice", [site = site_, reduce](Program& program) {
      auto& steps = program.lanes[site.lane].steps;
      steps.insert(steps.begin() + site.step, reduce);
    });
    mutants_.back().harmless_out_of_place = !writes_over_a_source(reduce);
  }
  bool writes_over_a_source(const Reduce& reduce) const {
    const Program program = schedule_.program(site_.rank);
    const auto first = program.sources.begin() + reduce.first;
    return std::any_of(first, first + reduce.count,
                       [&](Place source) { return source.space == reduce.to.space; });
  }

  const Schedule& schedule_;
  Site site_;
  std::vector<Mutant> mutants_;
};

}  // namespace

Schedule changed(const Schedule& schedule, uint32_t rank, std::function<void(Program&)> change) {
  return {schedule.frame(), [schedule, rank, change = std::move(change)](uint32_t r) {
            Program program = schedule.program(r);
            if (r == rank) change(program);
            return program;
          }};
}

std::vector<Mutant> mutants(const Schedule& schedule, uint32_t rank) {
  return Spoiler(schedule, rank).all();
}

}  // namespace crosstie::test
