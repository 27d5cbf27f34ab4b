// SPDX-License-Identifier: Apache-2.0
// What the readers of nccl-tests' text and JSON share.
#include "cost/nccl_tests.h"

#include <algorithm>

#include "base/numbers.h"
#include "base/printable.h"

namespace crosstie {
namespace {

struct Option {
  char letter;
  std::string_view name;
  bool (*fits)(int64_t value);
  std::string_view why_not;
};
constexpr auto kNone = [](int64_t value) { return value == 0; };
constexpr Option kOptions[] = {
    {'m', "agg_iters", [](int64_t value) { return value <= 1; },
     "its operations were batched (-m): each has but part of a launch"},
    {'G', "cudagraph", kNone, "its operations were batched (-G): each has but part of a launch"},
    {'z', "blocking", kNone, "its operations were waited for one by one (-z), and times hold that"},
    {'C', "report_cputime", kNone, "its times are the CPU's (-C 1)"},
    {'a', "average", [](int64_t value) { return value == 1 || value == 3; },
     "its times are not the ranks' mean (-a 1) or most (-a 3)"},
    {'R', "local_register", [](int64_t value) { return value != 2; },
     "symmetric memory (-R 2): NCCL ran kernels of which the model has none"},
};

// As getopt_long takes it: "-R", "-R2", "--local_register", "--local_reg=2". With what is joined to
// it.
struct Typed {
  const Option* option = nullptr;
  std::string_view joined;
};
Typed typed(std::string_view word) {
  constexpr size_t kFewest = 3;  // letters of a long name that are one option's alone
  const bool long_name = word.starts_with("--");
  word.remove_prefix(std::min<size_t>(long_name ? 2 : 1, word.size()));
  const std::string_view name = word.substr(0, word.find('='));
  for (const Option& option : kOptions) {
    if (long_name && name.size() >= kFewest && option.name.starts_with(name))
      return {&option, word.substr(std::min(name.size() + 1, word.size()))};
    if (!long_name && word.starts_with(option.letter)) return {&option, word.substr(1)};
  }
  return {};
}

}  // namespace

void heed_option(MeasuredRun& run, char letter, int64_t value) {
  const Option& option = *std::ranges::find(kOptions, letter, &Option::letter);
  if (!option.fits(value)) run.leave_out(option.why_not);
}

void heed_command(MeasuredRun& run, std::span<const std::string> words) {
  if (words.empty()) return;
  run.program = words[0];
  for (size_t i = 1; i < words.size(); i++) {
    const auto [option, joined] = words[i].starts_with('-') ? typed(words[i]) : Typed{};
    if (!option) continue;
    const std::string_view text = !joined.empty()        ? joined
                                  : i + 1 < words.size() ? std::string_view(words[i + 1])
                                                         : "";
    if (const auto value = number_of<int64_t>(text)) heed_option(run, option->letter, *value);
  }
}

bool NcclTestsDevices::add(uint32_t rank, uint32_t group, std::string_view host,
                           std::string_view device) {
  if (!hosts_.emplace(rank, host).second) return false;
  groups_.insert(group);
  const std::string one = fmt::format("{} of {}", device, host);
  if (!device.empty() && !devices_.insert(one).second) shared_ = one;
  return true;
}

void NcclTestsDevices::describe(uint32_t ranks_of_entry, MeasuredRun& run) const {
  if (hosts_.empty()) return;
  std::map<std::string_view, uint32_t> of_host;
  for (const auto& [rank, host] : hosts_) of_host[host]++;
  run.ranks = static_cast<uint32_t>(hosts_.size()) * ranks_of_entry;
  run.hosts = static_cast<uint32_t>(of_host.size());
  const uint64_t all = uint64_t{hosts_.rbegin()->first} + ranks_of_entry;
  if (all != run.ranks)
    run.leave_out(fmt::format("of its {} ranks it tells of {}: lines '#  Rank …' are missing", all,
                              run.ranks));
  if (!shared_.empty())
    run.leave_out(fmt::format("two ranks are on device {}: do several hosts have that name?",
                              printable(shared_)));
  if (groups_.size() > 1)
    run.leave_out(
        fmt::format("{} groups of ranks measured at once, and shared links", groups_.size()));
  for (const auto& [host, count] : of_host)
    if (count != of_host.begin()->second)
      return run.leave_out("its hosts have different numbers of ranks");
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
