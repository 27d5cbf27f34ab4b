// SPDX-License-Identifier: Apache-2.0
#include "cost/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/printable.h"
#include "base/text.h"
#include "cost/health.h"
#include "cost/system.h"

namespace crosstie {
namespace {

// The mean of the middle two of an even number.
template <class Value>
Value median(std::vector<Value> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

RelativeErrors errors_of(std::span<const Observation> observations, const ParameterValues& values) {
  std::vector<double> errors;
  for (const Observation& of : observations)
    errors.push_back(std::abs(predicted(values, of) / of.measured - 1));
  if (errors.empty()) return {};
  return {median(errors), *std::ranges::max_element(errors)};
}

constexpr uint32_t kMostRanks = 1 << 20;

// Why its times cannot be fitted to, by itself; empty: they can.
std::string unfit(const MeasuredRun& run) {
  if (!run.collective && !run.program.empty())
    return "NCCL has no algorithms to choose from for it";
  if (!run.unfit.empty()) return run.unfit;
  if (run.outcomes.empty()) return "it has no times";
  if (!run.collective) return "put collective=NAME before the file's name";
  if (run.ranks == 0) return "it tells of no devices: its lines '#  Rank …' are not there";
  if (run.ranks > kMostRanks || run.nodes > run.ranks)
    return fmt::format("no job has {} ranks on {} nodes", run.ranks, run.nodes);
  if (run.ranks == 1) return "one rank has nothing to communicate";
  const bool none_marked =
      std::ranges::all_of(run.outcomes, [](auto& of) { return of.wrong == 0; });
  if (run.out_of_bounds > 0 && none_marked)
    return "its data is wrong, and not told for which sizes";
  return "";
}

// How a run's ranks lie on hosts.
struct Layout {
  uint32_t hosts = 0, gpus_per_host = 0;
};
// Where only NCCL's nodes are told: on the fewest hosts.
Layout layout_of(const MeasuredRun& run, const Machine& kind) {
  if (run.hosts > 0) return {run.hosts, run.ranks / run.hosts};
  const uint32_t nodes = std::max(1u, run.nodes);
  const uint32_t gpus = std::max(1u, kind.count(DeviceKind::gpu));
  const uint32_t in_node = (run.ranks + nodes - 1) / nodes;
  const uint32_t hosts = nodes * ((in_node + gpus - 1) / gpus);
  return {hosts, run.ranks / hosts};
}

// NCCL 2.28.9, src/enqueue.cc and ncclNvlsSupported() in src/include/device.h: switches add up, or
// compare, some types only. Averages are no sums to it.
bool nvls_takes(Collective collective, const Outcome& of) {
  constexpr std::array<std::string_view, 6> kCompared = {"int32",  "uint32", "int64",
                                                         "uint64", "half",   "bfloat16"};
  if (collective == Collective::all_gather || of.type.empty()) return true;
  if (std::ranges::find(kCompared, of.type) != kCompared.end())
    return of.operation == "sum" || of.operation == "min" || of.operation == "max";
  return (of.type == "float" || of.type == "double") && of.operation == "sum";
}

// NCCL fences off most algorithms for them, and they take another time.
bool is_8_bit_float(const Outcome& of) { return of.type.starts_with("f8"); }

// Where the log does not tell, NCCL's pick. None where something else picked.
std::optional<NcclPair> what_ran(const NcclModel& nccl, const MeasuredRun& run, const Outcome& of) {
  if (of.ran || !run.tuner.empty()) return of.ran;
  NcclLimits limits = run.limits;
  if (!nvls_takes(*run.collective, of)) limits.without_nvls();
  return as_run(nccl, {*run.collective, of.bytes}, limits);
}

// Why nothing of a run is of use.
std::string none_fit(const MeasuredRun& run) {
  if (std::ranges::all_of(run.outcomes, is_8_bit_float)) return "its data are 8-bit floats";
  if (!run.tuner.empty())
    return fmt::format(
        "the tuner {} chose what ran, and the log does not tell it (NCCL_DEBUG_SUBSYS=TUNING does)",
        printable(run.tuner));
  return "none of its data is right, or its variables leave NCCL nothing to run";
}

// One of each size and pair of a job, with the median of all runs' times: the fit takes as long as
// there are observations.
std::vector<Observation> merged(std::span<const Observation> all) {
  const auto key = [](const Observation& of) {
    return std::tuple(of.facts.gpus, of.job.ranks, of.job.nodes, of.job.gpus_per_process, of.on_gpu,
                      of.collective, of.algorithm, of.protocol, of.bytes);
  };
  std::map<decltype(key(all.front())), std::vector<const Observation*>> alike;
  for (const Observation& of : all) alike[key(of)].push_back(&of);
  std::vector<Observation> out;
  for (const auto& [shared, repeats] : alike) {
    std::vector<Seconds> times;
    for (const Observation* of : repeats) times.push_back(of->measured);
    out.push_back(*repeats.front());
    out.back().measured = median(std::move(times));
  }
  return out;
}

class Calibrator {
 public:
  Calibrator(const std::shared_ptr<const Machine>& kind, const Profile& start,
             const NcclVersion& release)
      : kind_(kind), start_(start), release_(release) {}

  Result<Calibration> calibrate(std::vector<MeasuredRun> runs) {
    std::vector<Observation> all;
    for (MeasuredRun& run : runs) {
      CalibratedRun& one = result_.runs.emplace_back(CalibratedRun{std::move(run)});
      if (const Status observed = observe(one); !observed) return pass(observed, one.run.where());
      all.insert(all.end(), one.observations.begin(), one.observations.end());
    }
    // One system alone: there is no other that its many times would outweigh.
    std::vector<Observation> different = merged(all);
    for (Observation& of : different) of.weight = std::max(1.0, weight_in_system(different.size()));
    result_.points = all.size();
    result_.fit = fit(different, start_);
    compare(all);
    result_.findings = health_of(result_.runs, start_.values);
    note_releases();
    if (const Status told = describe(); !told) return pass(told);
    return std::move(result_);
  }

 private:
  Status observe(CalibratedRun& one) {
    one.left_out = unfit(one.run);
    if (!one.left_out.empty()) return {};
    const Layout layout = layout_of(one.run, *kind_);
    if (layout.hosts * layout.gpus_per_host != one.run.ranks) {
      one.left_out = "its nodes have different numbers of ranks";
      return {};
    }
    if (layout.gpus_per_host > kind_->count(DeviceKind::gpu)) {
      one.left_out = fmt::format("it has {} GPUs on a host, where {} has {}", layout.gpus_per_host,
                                 kind_->name(), kind_->count(DeviceKind::gpu));
      return {};
    }
    const auto job = job_of(layout, one.run.version.value_or(release_));
    if (!job) return pass(job);
    one.facts = job->modelled.facts, one.job = job->modelled.job;
    one.job.gpus_per_process = one.run.gpus_per_process;
    if (one.run.nodes > 0 && one.run.nodes != one.job.nodes)
      one.left_out = fmt::format("NCCL saw {} nodes (NVLink domains) where {} has {}",
                                 one.run.nodes, kind_->name(), one.job.nodes);
    if (one.left_out.empty()) add_observations(job->nccl, one);
    return {};
  }

  struct Job {
    ModelledJob modelled;
    NcclModel nccl;
  };
  // The search takes a while, and runs are mostly of few jobs.
  Result<Job> job_of(const Layout& layout, const NcclVersion& version) {
    const auto key = std::tuple(layout.hosts, layout.gpus_per_host, version);
    if (const auto known = jobs_.find(key); known != jobs_.end()) return known->second;
    const auto release = find_nccl_release(version);
    if (!release) return pass(release);
    const auto job = model_job(kind_, layout.hosts, layout.gpus_per_host, release->release);
    if (!job) return pass(job);
    return jobs_.emplace(key, Job{*job, NcclModel(release->release, job->nccl)}).first->second;
  }

  void add_observations(const NcclModel& nccl, CalibratedRun& one) {
    const Collective collective = *one.run.collective;
    std::map<std::pair<uint64_t, NcclPair>, std::vector<Seconds>> times;
    for (const Outcome& of : one.run.outcomes) {
      if (of.wrong > 0 || is_8_bit_float(of)) continue;
      const auto ran = what_ran(nccl, one.run, of);
      if (ran) times[{of.bytes, *ran}].push_back(of.time);
    }
    const CostModel model(start_.values, one.facts, one.job);
    for (const auto& [key, all] : times) {
      const auto& [bytes, ran] = key;
      if (!model.can_run(collective, ran.algorithm, ran.protocol)) {
        one.not_modelled++, one.for_one = ran;
        continue;
      }
      one.observations.push_back({one.facts, one.job, collective, ran.algorithm, ran.protocol,
                                  bytes, median(all), 1, one.run.on_gpu});
    }
    if (one.observations.empty() && one.not_modelled == 0)
      one.left_out = none_fit(one.run);
    else if (one.observations.empty())
      one.left_out = fmt::format("the system has no {}/{} in the model",
                                 name(one.for_one.algorithm), name(one.for_one.protocol));
  }

  // What a log's release is taken for where it is not known. Of one that was asked for the caller
  // tells.
  void note_releases() {
    std::set<NcclVersion> seen{release_};
    for (const CalibratedRun& one : result_.runs) {
      if (!one.left_out.empty() || !one.run.version || !seen.insert(*one.run.version).second)
        continue;
      const auto known = find_nccl_release(*one.run.version);
      if (known && !known->note.empty())
        result_.findings.push_back({.severity = Severity::note,
                                    .check = "release-unknown",
                                    .what = one.run.where() + ": its release is not known",
                                    .evidence = known->note});
    }
  }

  void compare(std::span<const Observation> all) {
    const ParameterValues &before = start_.values, &after = result_.fit.profile.values;
    result_.before = errors_of(all, before), result_.after = errors_of(all, after);
    for (CalibratedRun& one : result_.runs) {
      one.before = errors_of(one.observations, before);
      one.after = errors_of(one.observations, after);
    }
  }

  // Values that were not told keep the source that they have from the start.
  Status describe() {
    constexpr size_t kMostNamed = 3;
    std::vector<std::string> files;
    for (const CalibratedRun& one : result_.runs)
      if (one.left_out.empty() && (files.empty() || files.back() != one.run.where()))
        files.push_back(one.run.where());
    Profile& profile = result_.fit.profile;
    profile.name = printable(kind_->name());
    profile.source = fmt::format("measured: {} times of {}, from {}", result_.points, profile.name,
                                 some_of(files, kMostNamed));
    for (size_t i = 0; i < kParameters; i++)
      if (!result_.fit.told[i] && profile.sources[i].empty()) profile.sources[i] = start_.source;
    const auto facts = facts_of(*kind_);
    if (!facts) return pass(facts);
    profile.system = *facts;
    return {};
  }

  std::shared_ptr<const Machine> kind_;
  const Profile& start_;
  NcclVersion release_;
  std::map<std::tuple<uint32_t, uint32_t, NcclVersion>, Job> jobs_;
  Calibration result_;
};

}  // namespace

Result<Calibration> calibrate(const std::shared_ptr<const Machine>& kind,
                              std::vector<MeasuredRun> runs, const Profile& start,
                              const NcclVersion& release) {
  return Calibrator(kind, start, release).calibrate(std::move(runs));
}

}  // namespace crosstie
