// SPDX-License-Identifier: Apache-2.0
// From logs to a profile, and what is said of runs that look wrong.
#include "cost/calibration.h"

#include <criterion/criterion.h>

#include <bit>
#include <cmath>
#include <random>

#include "cost/logs.h"
#include "cost/system.h"
#include "knobs.h"
#include "synthetic_log.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

constexpr NcclVersion kRelease{2, 28, 9};

std::shared_ptr<const Machine> kind(const std::string& name = "dgx-h100") {
  const auto topology = read_synthetic(name);
  cr_assert(topology);
  return topology->hosts[0].machine;
}

Profile published() { return *read_profile(known_profiles()[0].toml); }

// What a log says that NCCL ran, with the time that the values give.
std::string modelled(const SyntheticLog& log, const ParameterValues& truth,
                     const NcclLimits& limits, double noise = 0, uint64_t seed = 1) {
  const auto release = find_nccl_release(kRelease);
  const auto job = model_job(kind(), log.hosts, log.gpus, release->release);
  cr_assert(job);
  const CostModel model(truth, job->facts, job->job);
  const NcclModel nccl(release->release, job->nccl);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  return log_of(log, [&](uint64_t bytes) {
    const auto ran = *as_run(nccl, {Collective::all_reduce, bytes}, limits);
    const Seconds time =
        model.predict(Collective::all_reduce, ran.algorithm, ran.protocol, bytes).time();
    return time * std::exp(noise > 0 ? normal(random) : 0);
  });
}

std::string forced(const std::string& algorithm, const std::string& protocol, SyntheticLog log,
                   const ParameterValues& truth, double noise = 0, uint64_t seed = 1) {
  NcclLimits limits;
  const std::string head = "node0:1000:1017 [0] NCCL INFO ";
  for (const auto& [name, value] : {std::pair("NCCL_ALGO", algorithm), {"NCCL_PROTO", protocol}}) {
    cr_assert(limits.set(name, value));
    log.environment += head + name + " set by environment to " + value + "\n";
  }
  return modelled(log, truth, limits, noise, seed);
}

Calibration calibrated(const std::vector<std::string>& texts) {
  Logs logs;
  for (const std::string& text : texts) {
    const Status added = logs.add(text, "log");
    cr_assert(added, "%s", added.error().text.c_str());
  }
  auto result = calibrate(kind(), logs.runs(), published(), kRelease);
  cr_assert(result, "%s", result.error().text.c_str());
  return std::move(*result);
}

std::vector<std::string> sweep(const ParameterValues& truth, double noise = 0, uint64_t seed = 1) {
  std::vector<std::string> texts;
  for (const uint32_t hosts : {1u, 2u}) {
    const SyntheticLog log{.hosts = hosts, .most = 4ull << 30};
    for (const std::string algorithm : {"Ring", "Tree"})
      for (const std::string protocol : {"LL", "LL128", "Simple"})
        texts.push_back(forced(algorithm, protocol, log, truth, noise, seed++));
    texts.push_back(modelled(log, truth, {}, noise, seed++));
  }
  return texts;
}

bool found(const Calibration& of, std::string_view check) {
  return std::ranges::any_of(of.findings, [&](const Finding& f) { return f.check == check; });
}
std::string all_findings(const Calibration& of) { return findings_text(of.findings); }

std::string row(uint64_t bytes, double out, double in, uint64_t wrong = 0) {
  return row_begin(bytes) + row_half(bytes, microseconds(out)) +
         row_half(bytes, microseconds(in), wrong) + "\n";
}

// A healthy sweep, of which one row is changed.
Calibration with_row(uint64_t bytes, double out, double in, uint64_t wrong = 0) {
  std::string text = modelled({}, published().values, {});
  const size_t begin = text.find("\n" + row_begin(bytes)) + 1;
  text.replace(begin, text.find('\n', begin) + 1 - begin, row(bytes, out, in, wrong));
  return calibrated({text});
}
double time_at(uint64_t bytes) {
  Logs logs;
  cr_assert(logs.add(modelled({}, published().values, {}), "log"));
  const auto runs = logs.runs();
  for (const Outcome& of : runs[0].outcomes)
    if (of.bytes == bytes) return of.time.count() * 1e6;
  return 0;
}

}  // namespace

Test(calibration, times_of_known_values_give_these_values_back) {
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 0.6);
  const Profile start = published();
  size_t told = 0, outside = 0;
  for (int round = 0; round < rounds(2); round++) {
    ParameterValues truth = start.values;
    for (size_t i = 0; i < kParameters; i++)
      truth.all()[i] =
          std::min(truth.all()[i] * std::pow(parameter_rows()[i].factor, normal(random)),
                   most(static_cast<Parameter>(i)));
    const Calibration of = calibrated(sweep(truth, 0.02, random()));
    cr_expect_lt(of.after.median, 0.03, "seed %lu: %g", seed, of.after.median);
    cr_expect_lt(of.after.median, of.before.median);
    for (size_t i = 0; i < kParameters; i++) {
      const Interval& interval = of.fit.profile.intervals[i];
      if (!of.fit.told[i]) continue;
      told++;
      outside += truth.all()[i] < interval.low || truth.all()[i] > interval.high;
    }
  }
  cr_expect_gt(told, 20);
  // One of twenty may lie outside; some times are off alike.
  cr_expect_leq(outside, told / 10, "seed %lu: %zu of %zu", seed, outside, told);
}

// Other parameters explain a part of it too, so that not all of the way is gone.
Test(calibration, values_that_are_off_go_most_of_the_way) {
  const ParameterValues start = published().values;
  ParameterValues truth = start;
  truth[Parameter::nvlink4_share] *= 0.92;
  truth[Parameter::ll_step] *= 1.5;
  const Fit fitted = calibrated(sweep(truth)).fit;
  for (const Parameter parameter : {Parameter::nvlink4_share, Parameter::ll_step}) {
    const double left = std::log(fitted.profile.values[parameter] / truth[parameter]);
    const double all = std::log(start[parameter] / truth[parameter]);
    cr_expect(std::abs(left) < 0.5 * std::abs(all), "%s: %g of %g left",
              row_of(parameter).name.data(), left, all);
    const auto index = static_cast<size_t>(parameter);
    cr_expect(fitted.told[index] && fitted.profile.sources[index].empty());
    cr_expect(fitted.profile.intervals[index].low < truth[parameter] &&
              truth[parameter] < fitted.profile.intervals[index].high);
  }
}

Test(calibration, what_the_data_is_silent_about_stays_as_it_was) {
  const Calibration of = calibrated({modelled({}, published().values, {})});
  const Profile start = published();
  const auto efa = static_cast<size_t>(Parameter::efa_step);
  cr_expect(!of.fit.told[efa]);
  cr_expect_eq(of.fit.profile.values.all()[efa], start.values.all()[efa]);
  cr_expect_eq(of.fit.profile.intervals[efa].high, start.intervals[efa].high);
  cr_expect(of.fit.profile.sources[efa] == start.source);
}

Test(calibration, the_profile_is_read_back_the_same) {
  const Profile profile = calibrated({modelled({}, published().values, {})}).fit.profile;
  cr_expect_str_eq(profile.name.c_str(), "dgx-h100");
  cr_expect_str_eq(profile.source.c_str(), "measured: 28 times of dgx-h100, from log");
  const auto again = read_profile(write_profile(profile));
  cr_assert(again, "%s", again.error().text.c_str());
  cr_expect(write_profile(*again) == write_profile(profile));
  cr_assert(again->system);
  cr_expect(again->system->gpus == 8 && again->system->multicast);
}

Test(calibration, times_of_the_gpus_clock_are_without_the_launch) {
  const auto job = model_job(kind(), 1, 8, find_nccl_release(kRelease)->release);
  const CostModel model(published().values, job->facts, job->job);
  std::string text;
  for (int i = 0; i < 20; i++) {
    const uint64_t bytes = 64ull << i;
    const double us =
        model.predict(Collective::all_reduce, Algorithm::ring, Protocol::simple, bytes)
            .time_on_gpu()
            .count() *
        1e6;
    for (int rank = 0; rank < 8; rank++)
      text += fmt::format(
          R"({{"schema":1,"communicator":"0x1","name":"","rank":{},"ranks":8,"nodes":1,)"
          R"("launch":{},"sequence":{},"collective":"all_reduce","bytes":{},"algorithm":"ring",)"
          R"("protocol":"simple","channels":8,"time_us":{:.3f}}})"
          "\n",
          rank, i, i, bytes, us);
  }
  const Calibration of = calibrated({text});
  cr_expect_eq(of.points, 20);
  cr_expect_lt(of.before.worst, 1e-3);
  cr_expect(!of.fit.told[static_cast<size_t>(Parameter::launch)]);
}

Test(health, a_healthy_run_has_no_findings) {
  const Calibration of = calibrated(sweep(published().values, 0.02));
  cr_expect(of.findings.empty(), "%s", all_findings(of).c_str());
}

Test(health, wrong_data_is_an_error_and_is_not_fitted_to) {
  const double time = time_at(1 << 20);
  const Calibration of = with_row(1 << 20, time, 100 * time, 7);
  cr_expect(found(of, "wrong-data") && of.findings[0].severity == Severity::error);
  cr_expect_str_eq(of.findings[0].evidence.c_str(), "line 35: 7 elements of 1MB in place");
  cr_expect_eq(of.points, 28);
  cr_expect_lt(of.before.worst, 0.01);
}

Test(health, places_far_apart_are_told) {
  const double time = time_at(1 << 20);
  cr_expect(found(with_row(1 << 20, time, 1.6 * time), "places-apart"));
  cr_expect(!found(with_row(1 << 20, time, 1.4 * time), "places-apart"));
}

Test(health, a_larger_message_that_is_faster_is_told) {
  const double time = time_at(8 << 20);
  cr_expect(found(with_row(8 << 20, time / 2.2, time / 2.2), "larger-is-faster") ||
            found(with_row(8 << 20, time / 4, time / 4), "larger-is-faster"));
  cr_expect(!found(with_row(8 << 20, time, time), "larger-is-faster"));
}

Test(health, what_no_link_can_carry_is_told) {
  const double time = time_at(1 << 30);
  const Calibration of = with_row(1 << 30, time / 3, time / 3);
  cr_expect(found(of, "above-links"), "%s", all_findings(of).c_str());
  cr_expect(!found(with_row(1 << 30, time / 1.1, time / 1.1), "above-links"));
}

Test(health, what_is_far_slower_than_the_model_is_told) {
  const double time = time_at(1 << 30);
  cr_expect(found(with_row(1 << 30, 2.2 * time, 2.2 * time), "below-model"));
  cr_expect(!found(with_row(1 << 30, 1.8 * time, 1.8 * time), "below-model"));
}

Test(health, repeats_that_disagree_are_told) {
  const ParameterValues values = published().values;
  std::string slow = modelled({}, values, {});
  const double time = time_at(1 << 30);
  const size_t begin = slow.find("\n" + row_begin(1 << 30)) + 1;
  slow.replace(begin, slow.find('\n', begin) + 1 - begin, row(1 << 30, 1.4 * time, 1.4 * time));
  cr_expect(found(calibrated({modelled({}, values, {}), slow}), "repeats-disagree"));
  cr_expect(!found(calibrated({slow, slow}), "repeats-disagree"));
}

Test(health, a_run_that_ended_early_is_told_and_still_fitted_to) {
  const std::string whole = modelled({}, published().values, {});
  const Calibration of = calibrated({whole.substr(0, whole.find("# Out of bounds"))});
  cr_expect(found(of, "ended-early"));
  cr_expect_eq(of.points, 28);
}

Test(health, too_few_sizes_are_told) {
  const ParameterValues values = published().values;
  cr_expect(
      found(calibrated({modelled({.least = 1 << 25, .most = 1 << 27}, values, {})}), "few-sizes"));
  const std::string small = modelled({.most = 1 << 20}, values, {});
  const std::string large = modelled({.least = 1 << 21}, values, {});
  cr_expect(found(calibrated({small}), "few-sizes") && found(calibrated({large}), "few-sizes"));
  cr_expect(!found(calibrated({small, large}), "few-sizes"));
}

Test(health, what_has_no_model_is_left_out_and_said) {
  const std::string good = modelled({}, published().values, {});
  const auto alltoall = calibrated(
      {good, log_of({.program = "alltoall_perf"}, [](uint64_t) { return microseconds(5); })});
  cr_expect(found(alltoall, "left-out") && is_clean(alltoall.findings));
  cr_expect_eq(alltoall.points, 28);
  const auto alone =
      calibrated({good, log_of({.gpus = 1}, [](uint64_t) { return microseconds(5); })});
  cr_expect(found(alone, "left-out") && !is_clean(alone.findings));
}

Test(health, sizes_for_which_the_model_has_nothing_are_noted) {
  const SyntheticLog log{.environment =
                             "node0:1000:1017 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo "
                             "COLLNET_CHAIN proto SIMPLE channel{Lo..Hi}={0..1}\n"};
  const Calibration of = calibrated({modelled(log, published().values, {})});
  cr_assert_eq(of.findings.size(), 1);
  cr_expect_str_eq(of.findings[0].evidence.c_str(),
                   "1 for which the system has no collnet_chain/simple in the model");
  cr_expect(is_clean(of.findings) && of.points == 27);
}

Test(calibration, jobs_that_cannot_be_are_left_out) {
  const std::string good = modelled({}, published().values, {});
  for (const auto& [ranks, nodes] : {std::pair(10u, UINT32_MAX), {UINT32_MAX, 1u}, {7u, 2u}}) {
    const std::string odd = fmt::format(
        R"({{"schema":1,"communicator":"0x1","rank":0,"ranks":{},"nodes":{},"launch":1,)"
        R"("sequence":1,"collective":"all_reduce","bytes":64,"algorithm":"ring",)"
        R"("protocol":"simple","time_us":9}})",
        ranks, nodes);
    const Calibration of = calibrated({good, odd});
    cr_expect(found(of, "left-out") && of.points == 28, "%u %u", ranks, nodes);
  }
}

Test(calibration, a_run_of_more_gpus_than_a_host_has_is_left_out) {
  const std::string good = modelled({}, published().values, {});
  const Calibration of =
      calibrated({good, log_of({.gpus = 16}, [](uint64_t) { return microseconds(5); })});
  cr_expect_eq(of.points, 28);
  cr_expect_str_eq(of.runs[1].left_out.c_str(), "it has 16 GPUs on a host, where dgx-h100 has 8");
}

Test(calibration, what_a_tuner_chose_is_not_taken_for_nccls_pick) {
  const std::string head = "node0:1000:1017 [0] NCCL INFO ";
  const std::string good = modelled({}, published().values, {});
  const auto with = [&](const std::string& line) {
    return calibrated({good, modelled({.environment = head + line}, published().values, {})});
  };
  for (const std::string name : {"crosstie (v5)", "tuner plugin other"}) {
    const Calibration of = with("TUNER/Plugin: Using " + name + "\n");
    cr_expect(found(of, "left-out") && of.points == 28);
  }
  cr_expect_eq(with("TUNER/Plugin: Using internal tuner plugin.\n").points, 56);
  const Calibration told = with("TUNER/Plugin: Using crosstie (v5)\n" + head +
                                "AllReduce: 1024 Bytes -> Algo RING proto LL "
                                "channel{Lo..Hi}={0..1}\n");
  cr_expect_eq(told.points, 29);
}

Test(calibration, nvls_is_not_taken_to_have_run_what_it_cannot) {
  const auto nvls_of = [](const std::string& type, const std::string& operation) {
    std::string text = modelled({}, published().values, {});
    for (size_t at = 0; (at = text.find("   float     sum", at)) != text.npos; at++)
      text.replace(at, 16, fmt::format("{:>8}  {:>6}", type, operation));
    const Calibration of = calibrated({modelled({}, published().values, {}), text});
    return std::ranges::any_of(of.runs[1].observations, [](const Observation& one) {
      return one.algorithm == Algorithm::nvls;
    });
  };
  cr_expect(nvls_of("float", "sum") && nvls_of("half", "max") && nvls_of("int32", "min"));
  cr_expect(!nvls_of("float", "max") && !nvls_of("half", "prod") && !nvls_of("int8", "sum"));
  cr_expect(!nvls_of("bfloat16", "avg") && !nvls_of("f8e4m3", "sum"));
}

Test(health, what_the_fit_does_not_explain_is_told) {
  const auto times = [](double factor) {
    return log_of({}, [factor](uint64_t bytes) {
      const bool odd = std::countr_zero(bytes) % 2 == 1;
      return microseconds(odd ? 50 * factor : 50 / factor);
    });
  };
  const Calibration slow = calibrated({times(30)});
  cr_expect(found(slow, "not-explained"), "%s", all_findings(slow).c_str());
  const Calibration fast = calibrated({log_of({}, [](uint64_t) { return microseconds(0.5); })});
  cr_expect(found(fast, "above-model"), "%s", all_findings(fast).c_str());
  cr_expect(!is_clean(slow.findings) && !is_clean(fast.findings));
}

Test(calibration, repeats_of_a_run_count_once) {
  const std::string once = modelled({}, published().values, {}, 0.1);
  const Calibration of = calibrated({once}), again = calibrated({once, once, once});
  cr_expect_eq(again.points, 3 * of.points);
  cr_expect(of.fit.profile.values.all() == again.fit.profile.values.all());
}

Test(calibration, a_release_that_is_not_known_is_noted) {
  std::string text = modelled({}, published().values, {});
  text.replace(text.find("nccl-library=22809"), 18, "nccl-library=29901");
  const Calibration of = calibrated({text});
  cr_expect(found(of, "release-unknown") && is_clean(of.findings));
}
