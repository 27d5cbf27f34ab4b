// SPDX-License-Identifier: Apache-2.0
// What the readers of nccl-tests' text and JSON share.
#include "cost/nccl_tests.h"

#include <map>

namespace crosstie {

void NcclTestsDevices::add(std::string_view host, uint64_t process, uint32_t group) {
  processes_.emplace(host, process);
  groups_.insert(group);
}

void NcclTestsDevices::describe(uint32_t gpus_of_process, MeasuredRun& run) const {
  std::map<std::string_view, uint32_t> of_host;
  for (const auto& [host, process] : processes_) of_host[host]++;
  run.gpus_per_process = gpus_of_process;
  run.ranks = static_cast<uint32_t>(processes_.size()) * gpus_of_process;
  run.hosts = static_cast<uint32_t>(of_host.size());
  run.groups = static_cast<uint32_t>(groups_.size());
  for (const auto& [host, count] : of_host) run.unequal_hosts |= count != of_host.begin()->second;
}

std::optional<Collective> collective_of_program(std::string_view program) {
  program = program.substr(program.find_last_of('/') + 1);
  const size_t end = program.find("_perf");
  return end == program.npos ? std::nullopt : word<Collective>(program.substr(0, end));
}

std::optional<NcclVersion> nccl_version_of_code(uint64_t code) {
  if (code < 2000 || code > 99'99'99) return std::nullopt;
  const auto number = static_cast<uint32_t>(code);
  if (number < 10000) return NcclVersion{number / 1000, number / 100 % 10, number % 100};
  return NcclVersion{number / 10000, number / 100 % 100, number % 100};
}

}  // namespace crosstie
