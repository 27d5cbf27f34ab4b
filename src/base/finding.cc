// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"

namespace crosstie {
namespace {

using Json = nlohmann::ordered_json;

// Goes up with every change that an old reader would stumble over.
constexpr int kSchemaVersion = 1;
constexpr size_t kMostNamed = 8;  // devices in a line

std::string counted(std::span<const Finding> findings, Severity severity) {
  const auto count = std::ranges::count(findings, severity, &Finding::severity);
  return fmt::format("{} {}{}", count, name(severity), count == 1 ? "" : "s");
}

std::string text_of(const Finding& f) {
  const std::string host = f.host.empty() ? "" : f.host + ": ";
  const std::string devices = f.devices.empty() ? "" : some_of(f.devices, kMostNamed) + ": ";
  std::string out = fmt::format("{}: {}\n", name(f.severity), printable(host + devices + f.what));
  if (!f.evidence.empty()) out += fmt::format("  seen: {}\n", printable(f.evidence));
  if (!f.advice.empty()) out += fmt::format("  do: {}\n", printable(f.advice));
  return out;
}

}  // namespace

std::vector<Finding> sorted(std::vector<Finding> findings) {
  std::vector<Finding> out;
  std::map<std::array<std::string_view, 5>, size_t> known;
  // The views stay valid: `out` never holds what they point into.
  for (const Finding& f : findings) {
    const auto [place, is_new] =
        known.try_emplace({f.check, f.host, f.what, f.evidence, f.advice}, out.size());
    if (is_new)
      out.push_back(f);
    else
      out[place->second].devices.insert(out[place->second].devices.end(), f.devices.begin(),
                                        f.devices.end());
  }
  std::ranges::stable_sort(out, {}, &Finding::severity);
  return out;
}

bool is_clean(std::span<const Finding> findings) {
  return std::ranges::all_of(findings,
                             [](const Finding& f) { return f.severity == Severity::note; });
}

std::string findings_text(std::span<const Finding> findings) {
  std::string out;
  for (const Finding& f : findings) out += text_of(f);
  return out + fmt::format("{}, {}, {}\n", counted(findings, Severity::error),
                           counted(findings, Severity::warning), counted(findings, Severity::note));
}

std::string findings_json(std::span<const Finding> findings, std::string_view schema) {
  Json list = Json::array();
  for (const Finding& f : findings) {
    Json devices = Json::array();
    for (const std::string& device : f.devices) devices.push_back(printable(device));
    list.push_back({{"severity", name(f.severity)},
                    {"check", f.check},
                    {"host", f.host.empty() ? Json() : Json(printable(f.host))},
                    {"devices", devices},
                    {"what", printable(f.what)},
                    {"evidence", printable(f.evidence)},
                    {"advice", printable(f.advice)}});
  }
  const Json document = {{"schema", schema}, {"version", kSchemaVersion}, {"findings", list}};
  // In ASCII, so that it may be shown on a terminal too.
  return document.dump(1, ' ', true) + "\n";
}

}  // namespace crosstie
