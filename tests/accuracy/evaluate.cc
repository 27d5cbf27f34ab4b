// SPDX-License-Identifier: Apache-2.0
// How true the model of our own is: fitted to published sweeps, and to all but one system at a
// time; its picks against the best measured arm. Prints the figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "choice/decision.h"
#include "sweeps.h"

namespace crosstie {
namespace {

constexpr uint64_t kLarge = 1 << 20;

Observation observation_of(const Measured& of, double weight) {
  return {of.facts,        of.job,   of.collective, of.ran.algorithm,
          of.ran.protocol, of.bytes, of.time,       weight};
}

// A system with many times counts as little more than one with few.
std::vector<Observation> observations_of(const std::vector<Measured>& measured) {
  std::map<std::string, size_t> count;
  for (const Measured& of : measured) count[of.system->name]++;
  std::vector<Observation> all;
  for (const Measured& of : measured)
    all.push_back(observation_of(of, weight_in_system(count[of.system->name])));
  return all;
}

double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double error_of(const ParameterValues& values, const Observation& of) {
  return std::abs(predicted(values, of) / of.measured - 1);
}

struct Errors {
  std::vector<double> small, large;
  void add(uint64_t bytes, double error) { (bytes >= kLarge ? large : small).push_back(error); }
  void print(const std::string& name) const {
    fmt::print("  {:16} >= 1 MiB {:6.3f} of {:4}   below {:6.3f} of {:4}\n", name, median(large),
               large.size(), median(small), small.size());
  }
};

void report(const std::string& title, const std::vector<Measured>& measured,
            const std::vector<double>& errors) {
  std::map<std::string, Errors> by_system;
  Errors all;
  fmt::print("{}: median error {:.3f}\n", title, median(errors));
  for (size_t i = 0; i < measured.size(); i++) {
    by_system[measured[i].system->name].add(measured[i].bytes, errors[i]);
    all.add(measured[i].bytes, errors[i]);
  }
  all.print("all");
  for (const auto& [name, of] : by_system) of.print(name);
}

std::vector<double> errors_of(const ParameterValues& values,
                              const std::vector<Observation>& observations) {
  std::vector<double> errors;
  for (const Observation& of : observations) errors.push_back(error_of(values, of));
  return errors;
}

// Predicted for each system by what the others tell.
std::vector<ParameterValues> leave_one_out(const std::vector<Measured>& measured,
                                           const std::vector<Observation>& observations) {
  std::map<std::string, ParameterValues> without;
  for (const Measured& of : measured) without[of.system->name];
  for (auto& [name, values] : without) {
    std::vector<Observation> others;
    for (size_t i = 0; i < measured.size(); i++)
      if (measured[i].system->name != name) others.push_back(observations[i]);
    values = fit(others).profile.values;
  }
  std::vector<ParameterValues> by_time;
  for (const Measured& of : measured) by_time.push_back(without[of.system->name]);
  return by_time;
}

struct Arm {
  Algorithm algorithm;
  std::optional<Protocol> protocol;
  Seconds time;
};

// Of the measured arms the one that the pick is: its protocol if that was measured by itself.
const Arm* arm_of(const std::vector<Arm>& arms, Algorithm algorithm, Protocol protocol) {
  const Arm* found = nullptr;
  for (const Arm& arm : arms) {
    if (arm.algorithm != algorithm) continue;
    if (arm.protocol == protocol) return &arm;
    if (!arm.protocol) found = &arm;
  }
  return found;
}

struct Regret {
  double ours = 0, nccl = 0;
};

std::optional<Regret> regret_of(const std::vector<const Measured*>& group,
                                const ParameterValues& values, bool verbose) {
  std::vector<Arm> arms;
  for (const Measured* of : group) {
    arms.push_back({of->ran.algorithm,
                    of->algorithm ? of->protocol : std::optional(of->ran.protocol), of->time});
  }
  std::stable_sort(arms.begin(), arms.end(),
                   [](const Arm& a, const Arm& b) { return a.time < b.time; });
  // The best time of each; what several runs of one arm differ by is not ours to win.
  for (auto arm = arms.begin(); arm != arms.end(); ++arm)
    arms.erase(std::remove_if(arm + 1, arms.end(),
                              [&](const Arm& other) {
                                return other.algorithm == arm->algorithm &&
                                       other.protocol == arm->protocol;
                              }),
               arms.end());
  Measured any = *group.front();
  for (const Measured* of : group) any.facts.multicast |= of->facts.multicast;
  any.algorithm.reset(), any.protocol.reset();
  const CostModel model(values, any.facts, any.job);
  const NcclModel* const nccl = nccl_model_of(any);
  const Arm* pick = nullptr;
  Seconds least{};
  std::string picked;
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (!model.can_run(any.collective, algorithm, protocol)) continue;
      const Arm* arm = arm_of(arms, algorithm, protocol);
      if (!arm) continue;
      if (!arm->protocol && !nccl->time({any.collective, any.bytes}, algorithm, protocol)) continue;
      const Seconds time = model.predict(any.collective, algorithm, protocol, any.bytes).time();
      if (pick && time >= least) continue;
      pick = arm, least = time;
      picked = fmt::format("{}/{}", name(algorithm), name(protocol));
    }
  const auto own_pick = as_run(any);
  const Arm* own = own_pick ? arm_of(arms, own_pick->algorithm, own_pick->protocol) : nullptr;
  if (!pick || arms.size() < 2) return std::nullopt;
  const Regret regret{pick->time / arms.front().time - 1,
                      own ? own->time / arms.front().time - 1 : NAN};
  if (verbose) {
    fmt::print("  {:14} {:12} {:3}x{:<3} {:11} B: {:18} regret {:6.3f} (NCCL {}/{} {:6.3f})",
               any.system->name, name(any.collective), any.job.nodes, any.job.ranks / any.job.nodes,
               any.bytes, picked, regret.ours, own_pick ? name(own_pick->algorithm) : "none",
               own_pick ? name(own_pick->protocol) : "", regret.nccl);
    for (const Arm& arm : arms)
      fmt::print(" {}{}{}={:.1f} ({:.1f})", name(arm.algorithm), arm.protocol ? "/" : "",
                 arm.protocol ? name(*arm.protocol) : "", arm.time.count() * 1e6,
                 1e6 * model
                           .predict(any.collective, arm.algorithm,
                                    arm.protocol.value_or(Protocol::simple), any.bytes)
                           .time()
                           .count());
    fmt::print("\n");
  }
  return regret;
}

double report_regret(const std::string& title, const std::vector<Measured>& measured,
                     const std::vector<ParameterValues>& values, bool verbose) {
  std::map<std::tuple<std::string, Collective, uint32_t, uint32_t, uint64_t>,
           std::vector<const Measured*>>
      groups;
  for (const Measured& of : measured)
    groups[{of.system->name, of.collective, of.job.ranks, of.job.nodes, of.bytes}].push_back(&of);
  double sum = 0, worst = 0, nccl = 0, nccl_worst = 0;
  size_t count = 0, nccl_count = 0;
  for (const auto& [key, group] : groups) {
    const auto regret =
        regret_of(group, values[static_cast<size_t>(group.front() - measured.data())], verbose);
    if (!regret) continue;
    sum += regret->ours, worst = std::max(worst, regret->ours), count++;
    if (std::isnan(regret->nccl)) continue;
    nccl += regret->nccl, nccl_worst = std::max(nccl_worst, regret->nccl), nccl_count++;
  }
  fmt::print(
      "{}: regret mean {:.4f}, worst {:.4f} of {}; NCCL's own pick, where measured: mean "
      "{:.4f}, worst {:.4f} of {}\n",
      title, sum / static_cast<double>(count), worst, count, nccl / static_cast<double>(nccl_count),
      nccl_worst, nccl_count);
  return sum / static_cast<double>(count);
}

// What this project promises of its model; see also README, "How true it is".
constexpr double kLargeError = 0.12, kSmallError = 0.20, kUnseenError = 0.25;
constexpr double kRegret = 0.01, kUnseenRegret = 0.05;

int gate(std::string_view what, double value, double most) {
  fmt::print("{} {}: {:.4f}, at most {}\n", value <= most ? "ok  " : "FAIL", what, value, most);
  return value <= most ? 0 : 1;
}

// Fitted to all: how many promises are broken.
int check_fit(const std::vector<Measured>& measured, const std::vector<Observation>& observations,
              const ParameterValues& values) {
  const std::vector<double> errors = errors_of(values, observations);
  report("fitted to all", measured, errors);
  const double regret =
      report_regret("fitted to all", measured, std::vector(measured.size(), values), true);
  Errors all;
  for (size_t i = 0; i < measured.size(); i++) all.add(measured[i].bytes, errors[i]);
  return gate("median error from 1 MiB", median(all.large), kLargeError) +
         gate("median error below 1 MiB", median(all.small), kSmallError) +
         gate("mean regret", regret, kRegret);
}

int check_unseen(const std::vector<Measured>& measured,
                 const std::vector<Observation>& observations) {
  const std::vector<ParameterValues> others = leave_one_out(measured, observations);
  std::vector<double> errors;
  for (size_t i = 0; i < measured.size(); i++)
    errors.push_back(error_of(others[i], observations[i]));
  report("leaving the system out", measured, errors);
  const double regret = report_regret("leaving the system out", measured, others, true);
  return gate("median error of systems never seen", median(errors), kUnseenError) +
         gate("mean regret on systems never seen", regret, kUnseenRegret);
}

void print_parameters(const Profile& profile) {
  fmt::print("{} parameters\n", kParameters);
  for (size_t i = 0; i < kParameters; i++) {
    const ParameterRow& row = parameter_rows()[i];
    fmt::print("  {:26} {:9.4g} {:5} ({:.4g} to {:.4g}; expected {:.4g})\n", row.name,
               profile.values.all()[i], name(row.unit), profile.intervals[i].low,
               profile.intervals[i].high, row.expected);
  }
}

int write(const Profile& profile, const std::string& file) {
  std::ofstream out(file);
  out << "# SPDX-License-Identifier: Apache-2.0\n# Written by tests/accuracy/evaluate.\n"
      << write_profile(profile);
  return out.flush() ? 0 : 1;
}

int run(const std::string& systems_file, const std::string& directory, const std::string& then) {
  const auto systems = read_systems(systems_file);
  const auto sweeps = read_sweeps(directory, systems);
  const std::vector<Measured>& measured = sweeps.measured;
  fmt::print("{} rows, {} left out, {} times\n", sweeps.rows, sweeps.left_out, measured.size());
  const std::vector<Observation> observations = observations_of(measured);
  Profile fitted = fit(observations).profile;
  print_parameters(fitted);
  const int failed = check_fit(measured, observations, fitted.values);
  if (then == "quick") return failed;
  fitted.name = "published";
  fitted.source = fmt::format("{} times of published nccl-tests sweeps on {} systems",
                              measured.size(), systems.size());
  return failed + check_unseen(measured, observations) + (then.empty() ? 0 : write(fitted, then));
}

}  // namespace
}  // namespace crosstie

// SYSTEMS SWEEPS [quick | PROFILE]: a file; a directory of .csv; nothing of systems left out, or a
// file to write the fitted profile to.
int main(int count, char** arguments) {
  if (count < 3) return 2;
  return crosstie::run(arguments[1], arguments[2], count > 3 ? arguments[3] : "") == 0 ? 0 : 1;
}
