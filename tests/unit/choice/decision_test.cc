// SPDX-License-Identifier: Apache-2.0
#include "choice/decision.h"

#include <criterion/criterion.h>

#include "cost/profile.h"
#include "cost/system.h"
#include "topology/format/formats.h"

using namespace crosstie;

namespace {

constexpr uint64_t kKiB = 1 << 10, kGiB = 1 << 30;

Result<ModelledJob> job_on(uint32_t hosts, uint32_t gpus) {
  const auto topology = read_synthetic("dgx-h100");
  return model_job(topology->hosts[0].machine, hosts, gpus,
                   find_nccl_release(*parse_nccl_version("2.28.9"))->release);
}

Decision decide(const CommunicatorClass& of, uint64_t bytes, uint32_t gpus = 8,
                Executor executor = Executor::nccl, uint32_t hosts = 1) {
  const auto job = job_on(hosts, gpus);
  cr_assert(job.has_value(), "%s", job ? "" : job.error().text.c_str());
  const CostModel cost(read_profile(known_profiles()[0].toml)->values, job->facts, job->job);
  const NcclModel nccl(find_nccl_release(*parse_nccl_version("2.28.9"))->release, job->nccl);
  const Decider decider({cost, nccl, job->facts, job->job, executor, of});
  const auto decision = decider.decide(Collective::all_reduce, bytes);
  cr_assert(decision.has_value());
  return *decision;
}

CommunicatorClass class_of(TrafficClass traffic, uint32_t gpus = 8) {
  return ClassRules::built_in().of(traffic, {gpus, 1, gpus, gpus});
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Test(decision, a_class_without_nvls_gets_another_and_is_told_why) {
  const Decision with = decide(class_of(TrafficClass::tp), kGiB);
  cr_assert(with.chosen().algorithm == Algorithm::nvls);
  const Decision without = decide(class_of(TrafficClass::pp), kGiB);
  cr_assert(without.chosen().algorithm == Algorithm::ring);
  cr_assert(has(without.reason, "class pp: no NVLS"), "%s", without.reason.c_str());
}

Test(decision, what_nccl_picks_by_itself_knows_no_classes) {
  const Decision without = decide(class_of(TrafficClass::pp), kGiB);
  cr_assert(without.nccl && without.nccl->algorithm == Algorithm::nvls);
  cr_assert_not(without.nccl->why_not.empty());
  cr_assert_gt(without.nccl->channels, 0u);
}

Test(decision, a_class_that_is_of_no_account_is_not_spoken_of) {
  const Decision small = decide(class_of(TrafficClass::pp), kKiB);
  cr_assert_not(has(small.reason, "class"), "%s", small.reason.c_str());
}

Test(decision, too_few_ranks_a_node_keep_nvls_out) {
  const Decision two = decide(class_of(TrafficClass::unknown, 2), kGiB, 2);
  for (const Considered& one : two.candidates)
    if (one.algorithm == Algorithm::nvls) cr_assert_not(one.why_not.empty());
}

Test(decision, a_budget_of_channels_bounds_the_choice_and_not_what_nccl_would_do) {
  CommunicatorClass of = class_of(TrafficClass::dp);
  of.policy.channels = 4;
  const Decision large = decide(of, kGiB);
  cr_assert_eq(large.chosen().channels, 4u);
  cr_assert_gt(large.nccl->channels, 4u);
  cr_assert(has(large.reason, "class dp: at most 4 channels"), "%s", large.reason.c_str());
  cr_assert_not(has(decide(of, kKiB).reason, "channels"));
}

Test(decision, what_may_run_comes_first_and_the_fastest_before) {
  const Decision decision = decide(class_of(TrafficClass::pp), kGiB, 8, Executor::nccl, 2);
  bool refused = false;
  Seconds last(0);
  for (const Considered& one : decision.candidates) {
    if (!one.why_not.empty() && !refused) refused = true, last = Seconds(0);
    cr_assert_eq(one.why_not.empty(), !refused);
    cr_assert(one.prediction.time() >= last);
    last = one.prediction.time();
  }
  cr_assert(refused);
}

Test(decision, each_executor_chooses_among_its_own) {
  const auto of = class_of(TrafficClass::unknown);
  const auto nccl = decide(of, kGiB, 8, Executor::nccl, 2);
  const auto own = decide(of, kGiB, 8, Executor::crosstie, 2);
  const auto any = decide(of, kGiB, 8, Executor::any, 2);
  cr_assert(nccl.chosen().executor == Executor::nccl);
  cr_assert(own.chosen().algorithm == Algorithm::hierarchical);
  cr_assert(own.nccl.has_value());
  cr_assert_leq(
      any.chosen().prediction.time().count(),
      1.01 * std::min(nccl.chosen().prediction.time(), own.chosen().prediction.time()).count());
}
