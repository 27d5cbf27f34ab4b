// SPDX-License-Identifier: Apache-2.0
#include "calibrate_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace crosstie::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kSchemaVersion = 1;

std::string errors_text(const RelativeErrors& before, const RelativeErrors& after) {
  return fmt::format("{:>5.0f} -> {:>3.0f} % {:>7.0f} -> {:>4.0f} %", 100 * before.median,
                     100 * after.median, 100 * before.worst, 100 * after.worst);
}

std::string runs_text(const Calibration& of) {
  std::string text =
      fmt::format("{:>6}  {:>14}  {:>17}\n", "points", "median error", "worst error");
  for (const CalibratedRun& one : of.runs)
    text += fmt::format(
        "{:>6}  {:>14}  {}: {}\n", one.observations.size(),
        one.left_out.empty() ? errors_text(one.before, one.after) : std::string("left out"),
        one.run.where(), one.run.what());
  return text + fmt::format("{:>6}  {}  all\n", of.points, errors_text(of.before, of.after));
}

std::string parameters_text(const Calibration& of, const Profile& start) {
  std::string told, silent;
  for (size_t i = 0; i < kParameters; i++) {
    const ParameterRow& row = parameter_rows()[i];
    const double before = start.values.all()[i], after = of.fit.profile.values.all()[i];
    const Interval& interval = of.fit.profile.intervals[i];
    if (of.fit.told[i])
      told +=
          fmt::format("  {:26} {:>9.4g} -> {:>9.4g} {:6} x {:<5.2f} ({:.4g} to {:.4g})\n", row.name,
                      before, after, name(row.unit), after / before, interval.low, interval.high);
    else
      silent += (silent.empty() ? "" : ", ") + std::string(row.name);
  }
  return "parameters, with what 95 % lie between:\n" + told +
         "as they were, for lack of data: " + silent + "\n";
}

// One line a finding.
std::string findings_lines(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& of : findings)
    text += printable(fmt::format("{}: {}: {}{}{}", name(of.severity), of.what, of.evidence,
                                  of.advice.empty() ? "" : "; ", of.advice)) +
            "\n";
  return text;
}

// To so many digits as mean anything; the last ones are arithmetic's. What is no number is null in
// JSON.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

Json errors_json(const RelativeErrors& of) {
  return {{"median", rounded(of.median)}, {"worst", rounded(of.worst)}};
}

Json run_json(const CalibratedRun& one) {
  const MeasuredRun& run = one.run;
  return {{"file", printable(run.file)},
          {"line", run.line},
          {"collective", run.collective ? Json(name(*run.collective)) : Json()},
          {"program", printable(run.program)},
          {"ranks", run.ranks},
          {"hosts", run.hosts},
          {"nodes", one.job.nodes},
          {"limits", run.limits.text()},
          {"points", one.observations.size()},
          {"left_out", one.left_out.empty() ? Json() : Json(one.left_out)},
          {"before", errors_json(one.before)},
          {"after", errors_json(one.after)}};
}

Json parameter_json(const Calibration& of, const Profile& start, size_t i) {
  const ParameterRow& row = parameter_rows()[i];
  const Profile& after = of.fit.profile;
  return {{"name", row.name},
          {"unit", name(row.unit)},
          {"before", rounded(start.values.all()[i])},
          {"value", rounded(after.values.all()[i])},
          {"low", rounded(after.intervals[i].low)},
          {"high", rounded(after.intervals[i].high)}};
}

Json finding_json(const Finding& of) {
  return {{"severity", name(of.severity)},
          {"check", of.check},
          {"what", printable(of.what)},
          {"evidence", printable(of.evidence)},
          {"advice", printable(of.advice)}};
}

}  // namespace

std::string calibration_text(const Calibration& of, const Profile& start) {
  const std::string fit = of.points > 0 ? parameters_text(of, start) : "";
  return runs_text(of) + fit + findings_lines(of.findings);
}

std::string calibration_json(const Calibration& of, const Profile& start) {
  Json json{{"schema", kSchemaVersion},
            {"profile", of.fit.profile.name},
            {"start", printable(start.name)},
            {"points", of.points},
            {"before", errors_json(of.before)},
            {"after", errors_json(of.after)},
            {"runs", Json::array()},
            {"parameters", Json::array()},
            {"silent", Json::array()},
            {"findings", Json::array()}};
  for (const CalibratedRun& one : of.runs) json["runs"].push_back(run_json(one));
  for (size_t i = 0; i < kParameters; i++)
    if (of.fit.told[i])
      json["parameters"].push_back(parameter_json(of, start, i));
    else
      json["silent"].push_back(parameter_rows()[i].name);
  for (const Finding& finding : of.findings) json["findings"].push_back(finding_json(finding));
  return json.dump(1, ' ', true) + "\n";
}

}  // namespace crosstie::tools
