// SPDX-License-Identifier: Apache-2.0
#include "cost/outcomes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"

namespace crosstie {
namespace {

using Json = nlohmann::json;
constexpr int kSchema = 1;

const Json& member(const Json& of, const char* key) {
  if (!of.is_object() || !of.contains(key))
    throw std::runtime_error(fmt::format("'{}' is needed", key));
  return of[key];
}

template <class Number>
Number number(const Json& of, const char* key) {
  const Json& value = member(of, key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<Number>::max())
    throw std::runtime_error(fmt::format("'{}' must be a whole number", key));
  return value.get<Number>();
}

std::string text(const Json& of, const char* key) {
  const Json& value = member(of, key);
  if (!value.is_string()) throw std::runtime_error(fmt::format("'{}' must be text", key));
  return value.get<std::string>();
}

// None: NCCL did not tell it, or told nonsense.
std::optional<Seconds> time_of(const Json& of) {
  const Json& value = member(of, "time_us");
  if (!value.is_number() && !value.is_null())
    throw std::runtime_error("'time_us' must be a number");
  const Seconds time = microseconds(value.is_number() ? value.get<double>() : 0);
  return time > Seconds(0) && std::isfinite(time.count()) ? std::optional(time) : std::nullopt;
}

}  // namespace

OutcomeLogs::Line OutcomeLogs::line_of(std::string_view own) {
  const Json json = Json::parse(own, nullptr, false);
  if (!json.is_object()) throw std::runtime_error("is no object of JSON, or not all of one");
  if (number<uint32_t>(json, "schema") != kSchema)
    throw std::runtime_error(fmt::format("this release reads schema {}", kSchema));
  Line line;
  line.communicator = text(json, "communicator"), line.function = text(json, "collective");
  line.sequence = number<uint64_t>(json, "sequence");
  line.rank = number<uint32_t>(json, "rank");
  line.call = {number<uint32_t>(json, "ranks"), number<uint32_t>(json, "nodes"),
               number<uint64_t>(json, "bytes"), word<Algorithm>(text(json, "algorithm")),
               word<Protocol>(text(json, "protocol"))};
  if (line.rank >= line.call.ranks) throw std::runtime_error("'rank' must be below 'ranks'");
  line.own = {number<uint64_t>(json, "launch"), time_of(json)};
  return line;
}

Status OutcomeLogs::add(std::string_view text, const std::string& file) {
  files_.push_back(file);
  size_t good = 0;
  std::string first;
  for (size_t number = 1; !text.empty(); number++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view own = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (own.empty()) continue;
    try {
      add(line_of(own));
      good++;
    } catch (const std::exception& error) {
      const std::string where = fmt::format("{}: line {}", printable(file), number);
      unreadable_.see(where, error.what());
      if (first.empty()) first = fmt::format("line {}: {}", number, error.what());
    }
  }
  if (good == 0) return fail(Code::invalid, "has no line that can be read: {}", first);
  return {};
}

void OutcomeLogs::add(const Line& line) {
  Ran& ran = ran_[{line.communicator, line.function, line.sequence}];
  if (ran.of_ranks.empty()) ran.call = line.call, ran.file = files_.size() - 1;
  const auto [known, fresh] = ran.of_ranks.emplace(line.rank, line.own);
  OfRank& own = known->second;
  ran.contradicted |= line.call != ran.call || line.own.launch != own.launch;
  if (fresh && line.own.launch > 0) in_launch_[{line.communicator, line.rank, line.own.launch}]++;
  if (fresh) return;
  repeated_++;
  if (!own.time) own.time = line.own.time;
}

bool OutcomeLogs::shared(const Communicator& communicator, const Ran& ran) const {
  return std::ranges::any_of(ran.of_ranks, [&](const auto& of) {
    const auto& [rank, own] = of;
    const auto found = in_launch_.find({communicator, rank, own.launch});
    return found != in_launch_.end() && found->second > 1;
  });
}

// Empty: its time is that of the rank that waited least.
std::string OutcomeLogs::why_not(const Communicator& communicator, const Ran& ran) const {
  if (ran.contradicted) return "of which lines contradict each other";
  if (!ran.call.algorithm || !ran.call.protocol) return "of an algorithm that is not known";
  if (ran.call.bytes == 0) return "of no bytes";
  if (ran.of_ranks.size() < ran.call.ranks)
    return fmt::format("in the logs of {} of {} ranks, where all are needed", ran.of_ranks.size(),
                       ran.call.ranks);
  if (std::ranges::any_of(ran.of_ranks, [](const auto& of) { return !of.second.time; }))
    return "without a time of each rank";
  return shared(communicator, ran) ? "that shared a kernel with others" : "";
}

MeasuredRun OutcomeLogs::empty_run(const Shape& shape, size_t file) const {
  const auto& [function, nodes, ranks] = shape;
  MeasuredRun run;
  run.file = files_[file], run.counted = "sequence";
  if (files_.size() > 1) run.file += fmt::format(" and {} more", files_.size() - 1);
  run.collective = word<Collective>(function), run.ranks = ranks, run.nodes = nodes;
  if (!run.collective) run.program = function;
  run.on_gpu = run.ended = true;
  return run;
}

void OutcomeLogs::tell_of_lines(MeasuredRun& run) const {
  unreadable_.tell(run);
  if (repeated_ > 0) run.skipped.push_back(fmt::format("{} lines given twice", repeated_));
}

Outcome OutcomeLogs::outcome_of(uint64_t sequence, const Ran& ran) {
  const auto least =
      std::ranges::min_element(ran.of_ranks, {}, [](const auto& of) { return *of.second.time; });
  return {.bytes = ran.call.bytes,
          .time = *least->second.time,
          .ran = NcclPair{*ran.call.algorithm, *ran.call.protocol},
          .line = static_cast<size_t>(sequence)};
}

std::vector<MeasuredRun> OutcomeLogs::runs() const {
  std::map<Shape, MeasuredRun> by_shape;
  std::map<Shape, std::map<std::string, size_t>> left_out;
  for (const auto& [operation, ran] : ran_) {
    const auto& [communicator, function, sequence] = operation;
    const Shape shape{function, ran.call.nodes, ran.call.ranks};
    MeasuredRun& run = by_shape.try_emplace(shape, empty_run(shape, ran.file)).first->second;
    if (const std::string why = why_not(communicator, ran); !why.empty()) {
      left_out[shape][why]++;
      continue;
    }
    run.outcomes.push_back(outcome_of(sequence, ran));
  }
  std::vector<MeasuredRun> runs;
  for (auto& [shape, run] : by_shape) {
    for (const auto& [why, count] : left_out[shape])
      run.skipped.push_back(fmt::format("{} collective{} {}", count, count == 1 ? "" : "s", why));
    runs.push_back(std::move(run));
  }
  if (!runs.empty()) tell_of_lines(runs.front());
  return runs;
}

}  // namespace crosstie
