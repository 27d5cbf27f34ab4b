// SPDX-License-Identifier: Apache-2.0
#include "topology/host_names.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <tuple>

#include "base/text.h"

namespace crosstie {
namespace {

constexpr size_t kMostNames = 1 << 20;
constexpr size_t kLongestName = 253;  // of a host in the DNS
using Names = std::vector<std::string>;

// Commas inside brackets do not separate.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0, depth = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '[') {
      depth++;
    } else if (text[i] == ']' && depth > 0) {
      depth--;
    }
  }
  return parts;
}

// 18 digits: so many always fit.
bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

uint64_t to_number(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// With zeros before it where the first of its range has such.
std::string padded(uint64_t number, std::string_view first) {
  return fmt::format("{:0{}}", number, first[0] == '0' ? first.size() : 1);
}

// "7" or "001-128", added to `numbers`.
Status expand_range(std::string_view range, Names& numbers) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == range.npos ? first : range.substr(dash + 1);
  if (!is_number(first) || !is_number(last))
    return fail(Code::invalid, "'{}' is neither a number nor a range of them", range);
  const uint64_t from = to_number(first), to = to_number(last);
  if (to < from) return fail(Code::invalid, "the range '{}' runs backwards", range);
  if (to - from >= kMostNames)
    return fail(Code::invalid, "the range '{}' is of more than {} hosts", range, kMostNames);
  for (uint64_t n = from; n <= to; n++) numbers.push_back(padded(n, first));
  return {};
}

Result<Names> expand_brackets(std::string_view ranges) {
  Names numbers;
  for (const std::string_view range : split(ranges)) {
    if (const Status done = expand_range(trim(range), numbers); !done) return pass(done);
    if (numbers.size() > kMostNames)
      return fail(Code::invalid, "'[{}]' is of more than {} hosts", ranges, kMostNames);
  }
  return numbers;
}

// Appends each of the endings to each of the names.
Status multiply(Names& names, const Names& endings) {
  if (names.size() * endings.size() > kMostNames)
    return fail(Code::invalid, "more than {} hosts", kMostNames);
  Names product;
  for (const std::string& name : names)
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > kLongestName)
        return fail(Code::invalid, "a name of more than {} letters", kLongestName);
      product.push_back(name + ending);
    }
  names = std::move(product);
  return {};
}

// One element of the list, whose brackets may be several.
Result<Names> expand_element(std::string_view element) {
  Names names = {""};
  for (std::string_view rest = element; !rest.empty();) {
    const size_t open = rest.find_first_of("[]");
    const std::string plain(rest.substr(0, open));
    if (const Status done = multiply(names, {plain}); !done) return pass(done);
    if (open == rest.npos) break;
    const size_t close = rest.find(']', open);
    if (rest[open] == ']' || close == rest.npos)
      return fail(Code::invalid, "'{}' has a bracket without its other", element);
    const auto numbers = expand_brackets(rest.substr(open + 1, close - open - 1));
    if (!numbers) return pass(numbers);
    if (const Status done = multiply(names, *numbers); !done) return pass(done);
    rest.remove_prefix(close + 1);
  }
  return names;
}

// A name around its last number; all of it is `before` where there is none.
struct Numbered {
  std::string_view before, number, after;
};

// What follows a dot is the network's name.
Numbered split_at_number(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t end = name.substr(0, name.find('.')).find_last_of(kDigits) + 1;
  const size_t begin = name.substr(0, end).find_last_not_of(kDigits) + 1;
  const std::string_view number = name.substr(begin, end - begin);
  if (!is_number(number)) return {name, "", ""};
  return {name.substr(0, begin), number, name.substr(end)};
}

// "001-128,130"
std::string ranges(const std::vector<std::string_view>& numbers) {
  std::string out;
  for (size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    last = first;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == padded(to_number(numbers[last]) + 1, numbers[first]))
      last++;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[first]);
    if (last > first) out += fmt::format("-{}", numbers[last]);
  }
  return out;
}

}  // namespace

std::string fold_host_names(std::vector<std::string_view> names) {
  std::ranges::sort(names, NaturalOrder());
  names.erase(std::ranges::unique(names).begin(), names.end());
  struct Element {
    Numbered first;
    std::vector<std::string_view> numbers;
  };
  std::vector<Element> elements;
  std::map<std::tuple<std::string_view, bool, std::string_view>, size_t> known;
  for (const std::string_view name : names) {
    const Numbered parts = split_at_number(name);
    const std::tuple around(parts.before, parts.number.empty(), parts.after);
    const auto [at, is_new] = known.emplace(around, elements.size());
    if (is_new) elements.push_back({parts, {}});
    elements[at->second].numbers.push_back(parts.number);
  }
  std::string out;
  for (const auto& [first, numbers] : elements) {
    const std::string all = ranges(numbers);
    out += fmt::format("{}{}{}{}", out.empty() ? "" : ",", first.before,
                       numbers.size() == 1 ? all : "[" + all + "]", first.after);
  }
  return out;
}

Result<Names> expand_host_names(std::string_view list) {
  Names all;
  for (const std::string_view part : split(list)) {
    const std::string_view element = trim(part);
    if (element.empty()) return fail(Code::invalid, "'{}' has a name of no letters", list);
    auto names = expand_element(element);
    if (!names) return pass(names);
    if (all.size() + names->size() > kMostNames)
      return fail(Code::invalid, "more than {} hosts", kMostNames);
    std::ranges::move(*names, std::back_inserter(all));
  }
  return all;
}

}  // namespace crosstie
