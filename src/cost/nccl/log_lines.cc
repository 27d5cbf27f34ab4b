// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/log_lines.h"

#include <algorithm>

#include "base/numbers.h"
#include "base/text.h"

namespace crosstie {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_host(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

// Takes digits from the end; false where there are none.
bool drop_number(std::string_view& text) {
  const size_t before = text.size();
  while (!text.empty() && is_digit(text.back())) text.remove_suffix(1);
  return text.size() < before;
}
bool drop(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// Up to the host's name, of "HOST:PID:THREAD [DEVICE] FILE:LINE"; the file of a warning only.
std::optional<std::string_view> up_to_host(std::string_view head) {
  const size_t device = head.rfind(" [");
  if (device == head.npos) return std::nullopt;
  head = head.substr(0, device);
  if (drop_number(head) && drop(head, ":") && drop_number(head) && drop(head, ":")) return head;
  return std::nullopt;
}

size_t host_size(std::string_view text, const std::set<std::string>& hosts) {
  size_t most = 0;
  for (const std::string& host : hosts)
    if (text.ends_with(host)) most = std::max(most, host.size());
  if (most > 0) return most;
  while (most < text.size() && is_of_host(text[text.size() - most - 1])) most++;
  return most;
}

// "[2026-11-30 12:00:00] ".
size_t without_time(std::string_view text) {
  const size_t open = text.rfind('[');
  const bool is_time = text.ends_with("] ") && open != text.npos && is_digit(text[open + 1]);
  return is_time ? open : text.size();
}

// What comes after the mark, up to the next blank.
std::string_view word_after(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == text.npos) return "";
  text.remove_prefix(at + mark.size());
  return text.substr(0, text.find(' '));
}

// Before 2.24 by its number, in NCCL's order, which is ours.
template <class Word>
std::optional<Word> word_or_number(std::string_view text, size_t count) {
  const auto number = number_of<uint32_t>(text);
  if (number && *number >= count) return std::nullopt;
  const auto word =
      number ? std::optional(static_cast<Word>(*number)) : spelled<Word>(text);
  return word && static_cast<size_t>(*word) < count ? word : std::nullopt;
}

}  // namespace

std::optional<NcclLogLine> find_nccl_log_line(std::string_view line,
                                              const std::set<std::string>& hosts) {
  for (const std::string_view mark : {" NCCL INFO ", " NCCL WARN "}) {
    const size_t at = line.find(mark);
    if (at == line.npos) continue;
    const auto head = up_to_host(line.substr(0, at));
    if (!head) continue;
    const size_t begin = head->size() - host_size(*head, hosts);
    return NcclLogLine{without_time(line.substr(0, begin)), line.substr(at + mark.size())};
  }
  return std::nullopt;
}

std::optional<NcclVariable> variable_told(std::string_view text) {
  constexpr std::string_view kMark = " set by environment to ";
  const size_t at = text.find(kMark);
  if (at == text.npos) return std::nullopt;
  std::string_view value = trim(text.substr(at + kMark.size()));
  if (value.ends_with('.')) value.remove_suffix(1);  // after numbers
  return NcclVariable{text.substr(0, at), value};
}

std::optional<NcclTuned> tuned_told(std::string_view text) {
  constexpr std::string_view kMark = " Bytes -> Algo ";
  const size_t at = text.find(kMark);
  if (at == text.npos) return std::nullopt;
  const std::string_view algorithm = word_after(text, kMark),
                         protocol = word_after(text, " proto ");
  std::string_view bytes = text.substr(0, at), function;
  if (const size_t colon = bytes.find(": "); colon != bytes.npos) {
    function = bytes.substr(0, colon);
    bytes.remove_prefix(colon + 2);
  }
  const auto size = number_of<uint64_t>(bytes);
  const auto ran = word_or_number<Algorithm>(algorithm, kNcclAlgorithms);
  const auto how = word_or_number<Protocol>(protocol, kNcclProtocols);
  const auto collective = spelled<Collective>(function);
  if (!size || !ran || !how || (!function.empty() && !collective)) return std::nullopt;
  return NcclTuned{collective, *size, !is_digit(algorithm.front()), {*ran, *how}};
}

std::optional<NcclVersion> version_told(std::string_view text) {
  const std::string_view version = word_after(text, "NCCL version ");
  const auto parsed = parse_nccl_version(version.substr(0, version.find('+')));
  return parsed ? std::optional(*parsed) : std::nullopt;
}

std::optional<std::string_view> tuner_told(std::string_view text) {
  for (const std::string_view mark : {"Using tuner plugin ", "TUNER/Plugin: Using "})
    if (const std::string_view name = word_after(text, mark); !name.empty() && name != "internal")
      return name;
  return std::nullopt;
}

std::optional<uint32_t> nodes_told(std::string_view text) {
  return number_of<uint32_t>(word_after(text, " nNodes "));
}

}  // namespace crosstie
