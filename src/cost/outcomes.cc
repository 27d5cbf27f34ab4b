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

// One line.
struct Line {
  std::string communicator;
  uint32_t rank = 0, ranks = 0, nodes = 0;
  uint64_t launch = 0, sequence = 0, bytes = 0;
  std::optional<Collective> collective;  // none: one of which NCCL has no model
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
  std::optional<double> microseconds;
};

template <class Number>
Number number(const Json& of, const char* key) {
  const Json& value = of.at(key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<Number>::max())
    throw std::runtime_error(fmt::format("'{}' must be a whole number", key));
  return value.get<Number>();
}

// Throws where a key is not there or of the wrong type.
Line line_of(const Json& json) {
  if (number<uint32_t>(json, "schema") != kSchema)
    throw std::runtime_error(fmt::format("this release reads schema {}", kSchema));
  Line line;
  line.communicator = json.at("communicator").get<std::string>();
  line.rank = number<uint32_t>(json, "rank"), line.ranks = number<uint32_t>(json, "ranks");
  line.nodes = number<uint32_t>(json, "nodes");
  line.launch = number<uint64_t>(json, "launch");
  line.sequence = number<uint64_t>(json, "sequence");
  line.bytes = number<uint64_t>(json, "bytes");
  line.collective = word<Collective>(json.at("collective").get<std::string>());
  line.algorithm = word<Algorithm>(json.at("algorithm").get<std::string>());
  line.protocol = word<Protocol>(json.at("protocol").get<std::string>());
  if (!json.at("time_us").is_null()) line.microseconds = json.at("time_us").get<double>();
  return line;
}

Result<Line> read_line(std::string_view text) {
  try {
    return line_of(Json::parse(text));
  } catch (const std::exception& error) {
    return fail(Code::invalid, "{}", printable(error.what()));
  }
}

}  // namespace

Status OutcomeLogs::add(std::string_view text, const std::string& file) {
  files_.push_back(file);
  for (size_t number = 1; !text.empty(); number++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view own = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (own.empty()) continue;
    const auto line = read_line(own);
    if (!line) return pass(line, fmt::format("line {}", number));
    if (line->launch > 0) in_launch_[{line->communicator, line->rank, line->launch}]++;
    if (!line->collective || !line->algorithm || !line->protocol || line->bytes == 0) continue;
    Ran& ran = ran_[{line->communicator, *line->collective, line->sequence}];
    if (ran.ranks == 0)
      ran = {line->ranks, line->nodes, line->bytes,      {*line->algorithm, *line->protocol},
             {},          {},          files_.size() - 1};
    ran.launches.emplace_back(line->rank, line->launch);
    if (!line->microseconds || !(*line->microseconds > 0) || !std::isfinite(*line->microseconds))
      continue;
    const Seconds time = crosstie::microseconds(*line->microseconds);
    ran.least = ran.least ? std::min(*ran.least, time) : time;
  }
  return {};
}

bool OutcomeLogs::shared(const Communicator& communicator, const Ran& ran) const {
  return std::ranges::any_of(ran.launches, [&](const auto& launch) {
    const auto found = in_launch_.find({communicator, launch.first, launch.second});
    return found != in_launch_.end() && found->second > 1;
  });
}

std::vector<MeasuredRun> OutcomeLogs::runs() const {
  std::map<std::tuple<Collective, uint32_t, uint32_t>, MeasuredRun> by_shape;
  for (const auto& [operation, ran] : ran_) {
    const auto& [communicator, collective, sequence] = operation;
    if (!ran.least || shared(communicator, ran)) continue;
    MeasuredRun& run = by_shape[{collective, ran.nodes, ran.ranks}];
    if (run.file.empty()) {
      run.file = files_[ran.file], run.counted = "sequence";
      run.collective = collective, run.ranks = ran.ranks, run.nodes = ran.nodes;
      run.on_gpu = run.ended = true;
    }
    run.outcomes.push_back({.bytes = ran.bytes,
                            .time = *ran.least,
                            .ran = ran.pair,
                            .line = static_cast<size_t>(sequence)});
  }
  std::vector<MeasuredRun> runs;
  for (auto& [shape, run] : by_shape) {
    if (files_.size() > 1) run.file += fmt::format(" and {} more", files_.size() - 1);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace crosstie
