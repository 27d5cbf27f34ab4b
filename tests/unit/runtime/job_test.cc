// SPDX-License-Identifier: Apache-2.0
#include "runtime/job.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

using Variables = std::map<std::string, std::string>;

Result<Job> job_in(Variables variables) {
  const Environment environment(std::move(variables));
  const auto options = read_options<RuntimeOptions>(kRuntimeOptions, environment);
  if (!options) return pass(options);
  return find_job(*options, environment);
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "n0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "r"}};

}  // namespace

Test(job, without_any_variables_it_is_a_job_of_one) {
  const auto job = job_in({});
  cr_assert(job.has_value());
  cr_assert(job->rank == 0 && job->ranks == 1);
}

Test(job, torchrun_gives_rank_size_address_and_port) {
  const auto job = job_in(kTorchrun);
  cr_assert(job.has_value());
  cr_assert(job->rank == 5 && job->ranks == 8);
  cr_assert(job->address == "n0" && job->port == 29500);
}

Test(job, the_port_that_torchruns_own_store_occupies_is_left_to_it) {
  Variables variables = kTorchrun;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  cr_assert(job_in(variables)->port == 29501);
}

Test(job, open_mpi_on_one_host_needs_no_address) {
  const auto job = job_in({{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_NAMESPACE", "1234.1"}});
  cr_assert(job.has_value());
  cr_assert(job->rank == 2 && job->ranks == 4 && job->address == "127.0.0.1");
}

Test(job, open_mpi_over_several_hosts_says_what_to_set) {
  const auto job = job_in({{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  cr_assert_not(job.has_value());
  cr_assert(job.error().text.find("MASTER_ADDR") != std::string::npos);
}

Test(job, mpirun_inside_a_slurm_allocation_is_open_mpis) {
  const auto job = job_in({{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "1234.1"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "1"}});
  cr_assert(job->rank == 1 && job->ranks == 2);
}

Test(job, slurm_meets_on_the_first_host_of_its_list) {
  const auto job = job_in({{"SLURM_PROCID", "3"},
                           {"SLURM_NTASKS", "16"},
                           {"SLURM_JOB_ID", "77"},
                           {"SLURM_STEP_NODELIST", "gpu[003-005,9],x"}});
  cr_assert(job->rank == 3 && job->ranks == 16 && job->address == "gpu003");
  cr_assert(first_host("a,b") == "a");
  cr_assert(first_host("n7") == "n7");
  cr_assert(first_host("n1,m[2-3]") == "n1");
  cr_assert(first_host("n[12,14]") == "n12");
}

Test(job, two_jobs_on_one_host_meet_apart) {
  const auto with = [](const char* name) {
    return *job_in({{"OMPI_COMM_WORLD_RANK", "0"},
                    {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                    {"PMIX_NAMESPACE", name}});
  };
  cr_assert(with("1.1").id != with("2.1").id);
  cr_assert(with("1.1").port != with("2.1").port);
}

Test(job, the_first_of_a_node_list_keeps_its_zeros_and_what_follows_the_numbers) {
  const std::pair<const char*, const char*> cases[] = {{"n[1-2]-ib", "n1-ib"},
                                                       {"n[007-100,200].site,other", "n007.site"},
                                                       {"r[2,4]n[01-16]-x", "r2n01-x"},
                                                       {"single", "single"},
                                                       {"a-b[3]", "a-b3"},
                                                       {"", ""},
                                                       {"broken[1-2", "broken1"},
                                                       {"broken[", "broken"}};
  for (const auto& [list, first] : cases)
    cr_assert(first_host(list) == first, "%s: %s", list, first_host(list).c_str());
}

Test(job, ipv6_addresses_may_stand_in_brackets) {
  Variables variables = kTorchrun;
  for (const char* text : {"::1", "[::1]"}) {
    variables["MASTER_ADDR"] = text;
    cr_assert(job_in(variables)->address == "::1");
  }
  variables["CROSSTIE_ADDRESS"] = "[fd00::2]:7000";
  const auto job = job_in(variables);
  cr_assert(job->address == "fd00::2" && job->port == 7000);
}

Test(job, a_rank_that_cannot_know_where_rank_0_is_says_why) {
  const auto job = job_in({{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  cr_assert(job.error().text.find("Open MPI starts 4 ranks, 2 on this host") != std::string::npos,
            "%s", job.error().text.c_str());
}

Test(job, our_own_variables_come_before_the_launchers) {
  Variables variables = kTorchrun;
  variables["CROSSTIE_RANK"] = "0";
  variables["CROSSTIE_RANKS"] = "2";
  variables["CROSSTIE_ADDRESS"] = "10.0.0.1:7000";
  const auto job = job_in(variables);
  cr_assert(job->rank == 0 && job->ranks == 2 && job->address == "10.0.0.1" && job->port == 7000);
}

Test(job, ranks_that_nothing_tells_from_another_jobs_are_refused_without_a_port) {
  Variables variables = {
      {"CROSSTIE_RANK", "0"}, {"CROSSTIE_RANKS", "2"}, {"MASTER_ADDR", "127.0.0.1"}};
  const auto refused = job_in(variables);
  cr_assert_not(refused.has_value());
  cr_assert(refused.error().text.find("set MASTER_PORT (or CROSSTIE_ADDRESS=HOST:PORT)") !=
            std::string::npos);
  variables["MASTER_PORT"] = "7000";
  cr_assert(job_in(variables)->port == 7000);
  cr_assert_not(job_in({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n0"}}).has_value());
  cr_assert(job_in({{"CROSSTIE_RANK", "0"}, {"CROSSTIE_RANKS", "1"}}).has_value());
}

Test(job, nonsense_is_refused_with_the_variables_name) {
  const std::pair<Variables, const char*> cases[] = {
      {{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "rank 2"},
      {{{"RANK", "0"}}, "WORLD_SIZE"},
      {{{"CROSSTIE_RANK", "1"}}, "CROSSTIE_RANKS is not set, and CROSSTIE_RANK is"},
      {{{"CROSSTIE_RANKS", "2"}}, "CROSSTIE_RANK is not set, and CROSSTIE_RANKS is"},
      {{{"CROSSTIE_RANK", "5"}, {"CROSSTIE_RANKS", "2"}},
       "rank 5 of 2 ranks, as CROSSTIE_RANKS or the program says, makes no sense; ranks count from "
       "0"},
      {{{"CROSSTIE_RANK", "0"}, {"CROSSTIE_RANKS", "0"}}, "a job of 0 ranks"},
      {{{"RANK", "9"}, {"WORLD_SIZE", "8"}}, "rank 9 of 8 ranks, as torchrun says"},
      {{{"CROSSTIE_RANK", "0"}, {"CROSSTIE_RANKS", "2"}}, "set CROSSTIE_ADDRESS to its HOST:PORT"},
      {{{"CROSSTIE_ADDRESS", "nowhere"}}, "HOST:PORT"},
      {{{"CROSSTIE_ADDRESS", "::1:29500"}}, "[IPV6]:PORT"},
      {{{"CROSSTIE_RANK", "0"}, {"CROSSTIE_RANKS", "100000000"}}, "at most 131072"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "100000000"}}, "at most 131072"},
      {{{"CROSSTIE_ADDRESS", "h:0"}}, "CROSSTIE_ADDRESS"},
      {{{"CROSSTIE_ADDRESS", "h:99999"}}, "CROSSTIE_ADDRESS"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "port"}}, "MASTER_PORT"},
  };
  for (const auto& [variables, expected] : cases) {
    const auto job = job_in(variables);
    cr_assert_not(job.has_value(), "%s", expected);
    cr_assert(job.error().text.find(expected) != std::string::npos, "%s", job.error().text.c_str());
  }
}

Test(job, its_part_on_this_host_is_known_where_something_tells_it_from_other_jobs) {
  const auto local = [](Variables variables) {
    return find_local_job(Environment(std::move(variables)));
  };
  cr_assert(!local({}));
  cr_assert(local(kTorchrun)->ranks == 4);
  Variables other = kTorchrun;
  other["RANK"] = "6";
  cr_assert(local(other)->id == local(kTorchrun)->id);
  other["MASTER_PORT"] = "29501";
  cr_assert(local(other)->id != local(kTorchrun)->id);
  // Slurm does not say how many ranks are here.
  cr_assert(local({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}})->ranks ==
            0);
  cr_assert(!local({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}));
}
