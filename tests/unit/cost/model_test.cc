// SPDX-License-Identifier: Apache-2.0
#include "cost/model.h"

#include <criterion/criterion.h>

#include "cost/bound.h"
#include "cost/fit.h"

using namespace crosstie;

namespace {

SystemFacts h100() {
  return {90, CpuVendor::intel, GpuLink::nvlink4,    gigabytes(450), true, 8,
          8,  gigabits(400),    Network::infiniband, false};
}
SystemFacts a100_on_slingshot() {
  return {80,
          CpuVendor::amd,
          GpuLink::nvlink3,
          gigabytes(300),
          false,
          4,
          2,
          gigabits(200),
          Network::slingshot,
          true};
}
SystemFacts rtx4090() {
  SystemFacts facts = h100();
  facts.gpu_link = GpuLink::pcie, facts.gpu_wire = gigabytes(31.5), facts.multicast = false;
  facts.compute_capability = 89, facts.nics = 1, facts.nic_wire = gigabits(100);
  return facts;
}
SystemFacts mi300x() {
  SystemFacts facts = h100();
  facts.gpu_link = GpuLink::xgmi, facts.gpu_wire = gigabytes(448), facts.multicast = false;
  return facts;
}

const std::vector<SystemFacts> kSystems = {h100(), a100_on_slingshot(), rtx4090(), mi300x()};
const std::vector<CostJob> kJobs = {{2, 1}, {8, 1}, {2, 2}, {16, 2}, {24, 3}, {4096, 512}};

// Everything that can run, at every size.
template <class Do>
void for_each(const Do& act) {
  for (const SystemFacts& facts : kSystems)
    for (const CostJob& job : kJobs) {
      const CostModel model(ParameterValues::expected(), facts, job);
      for (size_t c = 0; c < Names<Collective>::all.size(); c++)
        for (size_t a = 0; a < Names<Algorithm>::all.size(); a++)
          for (size_t p = 0; p < Names<Protocol>::all.size(); p++) {
            const auto collective = static_cast<Collective>(c);
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            if (model.can_run(collective, algorithm, protocol))
              act(model, facts, job, collective, algorithm, protocol);
          }
    }
}

}  // namespace

Test(model, more_bytes_never_take_less_time) {
  for_each([](const CostModel& model, const SystemFacts&, const CostJob&, Collective collective,
              Algorithm algorithm, Protocol protocol) {
    Seconds before{};
    for (uint64_t bytes = 8; bytes <= uint64_t{16} << 30; bytes = bytes * 3 / 2) {
      const Seconds time = model.predict(collective, algorithm, protocol, bytes).time();
      cr_assert(std::isfinite(time.count()) && time >= before, "%s/%s at %llu bytes",
                name(algorithm).data(), name(protocol).data(),
                static_cast<unsigned long long>(bytes));
      before = time;
    }
  });
}

// NVLS adds up in the switch, so that the bound is that of switches.
Test(model, nothing_is_faster_than_the_links_allow) {
  for_each([](const CostModel& model, const SystemFacts& facts, const CostJob& job,
              Collective collective, Algorithm algorithm, Protocol protocol) {
    const bool in_network = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
    for (uint64_t bytes = 1 << 10; bytes <= uint64_t{16} << 30; bytes *= 4) {
      const Bound bound = bound_of(collective, facts, job, bytes, in_network);
      const Seconds time = model.predict(collective, algorithm, protocol, bytes).time();
      cr_assert(time >= bound.time, "%s %s/%s on %u nodes at %llu bytes: %g s below %g s by %s",
                name(collective).data(), name(algorithm).data(), name(protocol).data(), job.nodes,
                static_cast<unsigned long long>(bytes), time.count(), bound.time.count(),
                bound.by.data());
    }
  });
}

Test(model, the_hierarchy_beats_the_ring_on_two_nodes_and_hardly_on_many) {
  SystemFacts facts = h100();
  facts.nic_wire = gigabits(200);  // slow enough for what is inside a node not to matter
  const auto gain = [&](uint32_t nodes) {
    const CostModel model(ParameterValues::expected(), facts, {8 * nodes, nodes});
    const auto time = [&](Algorithm algorithm) {
      return model.predict(Collective::all_reduce, algorithm, Protocol::simple, 8ull << 30).time();
    };
    return time(Algorithm::ring) / time(Algorithm::hierarchical);
  };
  // 2(N-1)/N over 2(n-1)/n of the bytes, as algorithms.md has it: 15/8 and 511/504.
  cr_expect_float_eq(gain(2), 15.0 / 8, 0.05);
  cr_expect_float_eq(gain(64), 511.0 / 504, 0.05);
}

// M = 10^9 bytes, 8 GPUs of 450 GB/s inside a node, 8 NICs of 25 GB/s.
Test(bound, two_levels_give_the_closed_forms) {
  SystemFacts facts = h100();
  facts.nic_wire = gigabits(200);
  const auto bound = [&](Collective collective, const CostJob& job) {
    return bound_of(collective, facts, job, 1'000'000'000, false);
  };
  const Bound nodes = bound(Collective::all_reduce, {32, 4});
  cr_expect_float_eq(nodes.time.count(), 2 * 3.0 / (4 * 200), 1e-9);
  cr_expect_str_eq(nodes.by.data(), "bytes between nodes");
  const Bound inside = bound(Collective::all_reduce, {8, 1});
  cr_expect_float_eq(inside.time.count(), 2 * 7.0 / (8 * 450), 1e-9);
  cr_expect_str_eq(inside.by.data(), "bytes between GPUs");
  const Bound gather = bound(Collective::all_gather, {32, 4});
  cr_expect_float_eq(gather.time.count(), 3.0 / (4 * 200), 1e-9);
}

Test(bound, few_bytes_are_bound_by_steps) {
  const Bound bound = bound_of(Collective::all_reduce, h100(), {4096, 512}, 8, false);
  cr_expect_str_eq(bound.by.data(), "steps in a row");
  // 512 nodes with 8 NICs each: 9^3 = 729 are told in 3 steps.
  cr_expect_float_eq(bound.time.count(), 0.6e-6 + 3 * 0.6e-6, 1e-12);
}

// Times that the model itself gives for other values of what they depend on.
Test(fit, finds_the_values_that_made_the_times) {
  ParameterValues truth = ParameterValues::expected();
  truth[Parameter::ll_step] = 1.3;
  truth[Parameter::nvlink4_share] = 0.7;
  truth[Parameter::ll_network_step] = 6;
  std::vector<Observation> observations;
  for (const CostJob& job : {CostJob{8, 1}, CostJob{4, 1}, CostJob{32, 4}, CostJob{128, 16}})
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
      for (uint64_t bytes = 64; bytes <= 4ull << 30; bytes *= 4)
        for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
          const CostModel model(truth, h100(), job);
          const Seconds time =
              model.predict(Collective::all_reduce, algorithm, protocol, bytes).time();
          observations.push_back(
              {h100(), job, Collective::all_reduce, algorithm, protocol, bytes, time, 20});
        }
  const Profile fitted = fit(observations).profile;
  for (const Parameter parameter :
       {Parameter::ll_step, Parameter::nvlink4_share, Parameter::ll_network_step}) {
    const double value = fitted.values[parameter], expected = truth[parameter];
    cr_expect(std::abs(value / expected - 1) < 0.03, "%s: %g, not %g",
              row_of(parameter).name.data(), value, expected);
  }
}

Test(fit, what_nothing_was_measured_of_stays_as_expected) {
  const Observation one{h100(),           {8, 1},  Collective::all_reduce, Algorithm::ring,
                        Protocol::simple, 1 << 20, microseconds(60),       1};
  const Profile fitted = fit({&one, 1}).profile;
  const auto at = static_cast<size_t>(Parameter::efa_step);
  const ParameterRow& row = row_of(Parameter::efa_step);
  cr_expect_float_eq(fitted.values[Parameter::efa_step], row.expected, 1e-6 * row.expected);
  cr_expect_float_eq(fitted.intervals[at].high / row.expected, std::pow(row.factor, 1.96), 1e-3);
}

namespace {

// Times of rings on 8 H100, as those values have them.
std::vector<Observation> ring_times(const ParameterValues& truth) {
  std::vector<Observation> observations;
  for (uint64_t bytes = 1 << 20; bytes <= 4ull << 30; bytes *= 2) {
    Observation of{
        h100(),     {8, 1}, Collective::all_reduce, Algorithm::ring, Protocol::simple, bytes,
        Seconds(1), 20};
    of.measured = predicted(truth, of);
    observations.push_back(of);
  }
  return observations;
}

}  // namespace

// As it is for shares that an earlier fit put there.
Test(fit, a_share_that_starts_at_its_most_can_come_down) {
  Profile start = Profile::expected();
  start.values[Parameter::nvlink4_share] = 1;
  ParameterValues truth = start.values;
  truth[Parameter::nvlink4_share] = 0.9;
  const Fit fitted = fit(ring_times(truth), start);
  const double value = fitted.profile.values[Parameter::nvlink4_share];
  cr_expect_float_eq(value, 0.9, 0.01, "%g", value);
  cr_expect(fitted.told[static_cast<size_t>(Parameter::nvlink4_share)]);
}

Test(fit, a_share_that_ends_at_its_most_is_told_of) {
  ParameterValues truth = ParameterValues::expected();
  truth[Parameter::nvlink4_share] = 1.2;  // more than there is
  const Fit fitted = fit(ring_times(truth));
  cr_expect_eq(fitted.profile.values[Parameter::nvlink4_share], 1);
  cr_expect(fitted.told[static_cast<size_t>(Parameter::nvlink4_share)]);
}
