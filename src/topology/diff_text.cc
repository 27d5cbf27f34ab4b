// SPDX-License-Identifier: Apache-2.0
// Differences as people and programs read them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/printable.h"
#include "base/text.h"
#include "topology/diff.h"

namespace crosstie {
namespace {

using Json = nlohmann::ordered_json;

// Goes up with every change that an old reader would stumble over.
constexpr int kSchemaVersion = 1;
constexpr size_t kMostNamed = 4;  // devices or paths of one difference

std::string hosts_text(const std::vector<std::string>& hosts) {
  return hosts.empty() ? "" : some_of(hosts, 1) + ": ";
}

// What is the same of several devices becomes one, if it has no effects of its own.
std::vector<Difference> together(std::span<const Difference> differences) {
  std::vector<Difference> out;
  std::vector<std::vector<std::string>> devices;
  for (const Difference& d : differences) {
    const auto same = std::ranges::find_if(out, [&](const Difference& o) {
      return d.effects.empty() && o.effects.empty() &&
             std::tie(d.kind, d.hosts, d.what, d.first, d.second) ==
                 std::tie(o.kind, o.hosts, o.what, o.first, o.second);
    });
    if (same == out.end()) {
      out.push_back(d);
      devices.push_back({d.device});
    } else {
      devices[static_cast<size_t>(same - out.begin())].push_back(d.device);
    }
  }
  for (size_t i = 0; i < out.size(); i++) out[i].device = some_of(devices[i], kMostNamed);
  return out;
}

Json words(const std::vector<std::string>& list) {
  Json out = Json::array();
  for (const std::string& word : list) out.push_back(printable(word));
  return out;
}

Json if_there(const std::string& value) { return value.empty() ? Json() : Json(printable(value)); }

// A property in words; what else differs is told in words already.
std::string_view in_words(std::string_view what) {
  std::string_view words = what;
  for_each_field([&](const auto& field) {
    if (field.name == what) words = field.words;
  });
  return words;
}

}  // namespace

std::string to_text(const Difference& d, std::string_view first, std::string_view second) {
  const std::string about =
      fmt::format("{}{}: {}", hosts_text(d.hosts), d.device, in_words(d.what));
  if (d.second.empty())
    return d.first == "there" ? fmt::format("{}: only in {}", about, first)
                              : fmt::format("{}: {}, only in {}", about, d.first, first);
  if (d.first.empty())
    return d.second == "there" ? fmt::format("{}: only in {}", about, second)
                               : fmt::format("{}: {}, only in {}", about, d.second, second);
  return fmt::format("{}: {} -> {}", about, d.first, d.second);
}

std::string differences_text(std::span<const Difference> differences, std::string_view first,
                             std::string_view second) {
  std::string out;
  for (const Difference& d : together(differences)) {
    out += fmt::format("{:<9} {}\n", name(d.kind), printable(to_text(d, first, second)));
    for (size_t i = 0; i < d.effects.size() && i < kMostNamed; i++)
      out += fmt::format("{:<9}   {}\n", "", printable(d.effects[i]));
    if (d.effects.size() > kMostNamed)
      out += fmt::format("{:<9}   and {} more\n", "", d.effects.size() - kMostNamed);
  }
  return out;
}

std::string differences_json(std::span<const Difference> differences, std::string_view first,
                             std::string_view second) {
  Json list = Json::array();
  for (const Difference& d : differences)
    list.push_back({{"kind", name(d.kind)},
                    {"hosts", words(d.hosts)},
                    {"device", printable(d.device)},
                    {"what", printable(d.what)},
                    {"first", if_there(d.first)},
                    {"second", if_there(d.second)},
                    {"effects", words(d.effects)}});
  const Json document = {{"schema", "crosstie-topology-diff"},
                         {"version", kSchemaVersion},
                         {"first", printable(std::string(first))},
                         {"second", printable(std::string(second))},
                         {"differences", list}};
  return document.dump(1, ' ', true) + "\n";
}

}  // namespace crosstie
