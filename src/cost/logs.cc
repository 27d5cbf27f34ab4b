// SPDX-License-Identifier: Apache-2.0
#include "cost/logs.h"

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "cost/nccl_tests.h"

namespace crosstie {
namespace {

// The plugin writes an object a line, nccl-tests one in all.
bool is_log_of_outcomes(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view own = trim(line);
    if (own.starts_with('{')) return own.find("\"communicator\":") != own.npos;
    if (own.starts_with('#')) return false;
  }
  return false;
}

}  // namespace

Status Logs::add(std::string_view text, const std::string& file, const ToldOfLog& told) {
  if (is_log_of_outcomes(text)) {
    if (told.empty()) return outcomes_.add(text, file);
    return fail(Code::unsupported, "a log of outcomes tells all by itself: put no {}= before it",
                printable(told.front().first));
  }
  const bool json = trim(text).starts_with('{');
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
