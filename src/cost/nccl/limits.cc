// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/limits.h"

#include "base/printable.h"
#include "base/text.h"

namespace crosstie {
namespace {

constexpr std::string_view kAlgorithms = "NCCL_ALGO", kProtocols = "NCCL_PROTO",
                           kNvls = "NCCL_NVLS_ENABLE";

// The part up to the mark, which goes from the text with it.
std::string_view cut(std::string_view& text, char mark) {
  const size_t at = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

// "ring,tree" or "^ring,tree".
template <class Word, size_t count>
Result<std::bitset<count>> read_set(std::string_view list) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  std::bitset<count> set;
  while (!list.empty()) {
    const std::string_view element = cut(list, ',');
    if (element.empty()) continue;
    const auto word = spelled<Word>(element);
    if (!word || static_cast<size_t>(*word) >= count)
      return fail(Code::invalid, "NCCL knows no '{}'", printable(element));
    set.set(static_cast<size_t>(*word));
  }
  return all_but ? ~set : set;
}

// Lists after semicolons; all but the first are for a function each, "allreduce:ring" (NCCL 2.28.9,
// src/graph/tuning.cc).
template <class Word, class Sets>
Status read_sets(std::string_view text, Sets& sets) {
  for (bool first = true; !text.empty(); first = false) {
    std::string_view list = cut(text, ';');
    if (list.empty()) continue;
    std::optional<Collective> only;
    if (list.find(':') != list.npos) {
      const std::string_view function = cut(list, ':');
      only = spelled<Collective>(function);
      if (!only) return fail(Code::invalid, "NCCL knows no function '{}'", printable(function));
    } else if (!first) {
      return fail(Code::invalid, "'{}' is for no function; only the first list may be",
                  printable(list));
    }
    const auto set = read_set<Word, std::tuple_element_t<0, Sets>{}.size()>(list);
    if (!set) return pass(set);
    for (size_t c = 0; c < sets.size(); c++)
      if (!only || static_cast<size_t>(*only) == c) sets[c] = *set;
  }
  return {};
}

int usual(NcclPair pair) {
  return 2 * (pair.algorithm == Algorithm::ring) + (pair.protocol == Protocol::simple);
}

}  // namespace

NcclLimits::NcclLimits() {
  for (auto& set : algorithms_) set.set();
  for (auto& set : protocols_) set.set();
}

bool NcclLimits::heeds(std::string_view variable) {
  return variable == kAlgorithms || variable == kProtocols || variable == kNvls;
}

Status NcclLimits::set(std::string_view variable, std::string_view value) {
  Status read;
  if (variable == kAlgorithms) read = read_sets<Algorithm>(value, algorithms_);
  if (variable == kProtocols) read = read_sets<Protocol>(value, protocols_);
  if (variable == kNvls) nvls_ = value != "0";
  if (!read) return pass(read, fmt::format("{}={}", variable, printable(value)));
  const std::string setting = fmt::format("{}={}", variable, printable(value));
  if (heeds(variable) && text_.find(setting) == text_.npos)
    text_ += (text_.empty() ? "" : " ") + setting;
  return {};
}

void NcclLimits::only(Algorithm algorithm) {
  for (auto& set : algorithms_) set.reset().set(static_cast<size_t>(algorithm));
}

void NcclLimits::only(Protocol protocol) {
  for (auto& set : protocols_) set.reset().set(static_cast<size_t>(protocol));
}

bool NcclLimits::allows(Collective collective, NcclPair pair) const {
  const auto function = static_cast<size_t>(collective);
  return pair.algorithm < Algorithm::hierarchical && (nvls_ || !is_nvls(pair.algorithm)) &&
         algorithms_[function][static_cast<size_t>(pair.algorithm)] &&
         protocols_[function][static_cast<size_t>(pair.protocol)];
}

std::optional<NcclPair> as_run(const NcclModel& model, const NcclCall& call,
                               const NcclLimits& limits) {
  std::optional<NcclPair> best, forced;
  std::optional<Seconds> least;
  const auto consider = [&](NcclPair pair) {
    if (!limits.allows(call.collective, pair)) return;
    const auto time = model.time(call, pair.algorithm, pair.protocol);
    if (!time && (!forced || usual(pair) > usual(*forced))) forced = pair;
    if (time && (!least || *time < *least)) least = time, best = pair;
  };
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++)
      consider({static_cast<Algorithm>(a), static_cast<Protocol>(p)});
  return best ? best : forced;
}

}  // namespace crosstie
