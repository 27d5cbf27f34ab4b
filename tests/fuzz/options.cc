// SPDX-License-Identifier: Apache-2.0
// Lines "NAME=VALUE" are the environment of a process: units, durations, node lists, launchers'
// variables. What is read can be written, and means the same.
#include "base/options.h"

#include "runtime/job.h"
#include "target.h"
#include "transport/options.h"

using namespace crosstie;

namespace {

Environment environment_of(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t equals = std::min(line.find('='), line.size());
    values[std::string(line.substr(0, equals))] = line.substr(std::min(equals + 1, line.size()));
  }
  return Environment(std::move(values));
}

void check_units(std::string_view value) {
  if (const auto bytes = parse_bytes(value)) PROMISE(parse_bytes(bytes_text(*bytes)) == *bytes);
  if (const auto duration = parse_duration(value)) {
    PROMISE(duration->count() >= 0);
    // Beyond 2^53 ns a number has no exact way through double.
    if (duration->count() < 1ll << 53)
      PROMISE(parse_duration(duration_text(*duration)) == *duration);
  }
  PROMISE(first_host(value).size() <= value.size());
}

void check_job(const Environment& environment) {
  const auto options = read_options<RuntimeOptions>(kRuntimeOptions, environment);
  if (!options) return;
  PROMISE(check(*options));
  const auto job = find_job(*options, environment);
  if (!job) return;
  PROMISE(job->rank >= 0 && job->rank < job->ranks);
  PROMISE(job->port > 0 && job->port <= 65535 - Job::kPorts + 1);
  PROMISE(!job->address.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Environment environment = environment_of(fuzz::text_of(data, size));
  for (const auto& [name, value] : environment.values()) check_units(value);
  check_job(environment);
  if (const auto options = read_options<TransportOptions>(kTransportRows, environment))
    PROMISE(check(*options));
  const OptionRow* known[] = {&kRuntimeOptions[0], &kTransportRows[0]};
  for (const Unknown& unknown : unknown_variables(known, environment))
    PROMISE(unknown.name.starts_with("CROSSTIE_"));
  return 0;
}
