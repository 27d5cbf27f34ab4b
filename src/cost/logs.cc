// SPDX-License-Identifier: Apache-2.0
#include "cost/logs.h"

#include "base/text.h"
#include "cost/nccl_tests.h"

namespace crosstie {
namespace {

// The plugin writes an object a line, nccl-tests one in all.
bool is_log_of_outcomes(std::string_view text) {
  return text.substr(0, text.find('\n')).find("\"communicator\":") != text.npos;
}

}  // namespace

Status Logs::add(std::string_view text, const std::string& file, const ToldOfLog& told) {
  const bool json = trim(text).starts_with('{');
  if (json && is_log_of_outcomes(trim(text))) return outcomes_.add(text, file);
  auto runs = json ? read_nccl_tests_json(text, file, told) : read_nccl_tests(text, file, told);
  if (!runs) return pass(runs);
  if (runs->empty())
    return fail(Code::invalid, "has no run of nccl-tests in it, and is no log of outcomes");
  std::ranges::move(*runs, std::back_inserter(runs_));
  return {};
}

std::vector<MeasuredRun> Logs::runs() const {
  std::vector<MeasuredRun> all = runs_;
  std::ranges::move(outcomes_.runs(), std::back_inserter(all));
  return all;
}

}  // namespace crosstie
