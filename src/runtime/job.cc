// SPDX-License-Identifier: Apache-2.0
#include "runtime/job.h"

#include <algorithm>
#include <array>

#include "base/digest.h"

namespace crosstie {
namespace {

// One way of starting ranks. `id` tells apart jobs that share hosts.
struct Launcher {
  const char* what;
  const char *rank, *ranks;
  const char* local_ranks;  // ranks on this host
  std::array<const char*, 2> id;
};

// Names as documented by torchrun, Open MPI, MPICH's Hydra and Slurm. Open MPI and PMI come
// before Slurm, since mpirun inside an allocation sees Slurm's variables too.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {"PMI_JOBID", "HYDRA_PROXY_PORT"}},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

std::string_view value(const Environment& environment, const char* name) {
  const std::string* found = environment.find(name);
  return found ? std::string_view(*found) : std::string_view();
}

const Launcher* find_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers)
    if (environment.find(launcher.rank) && environment.find(launcher.ranks)) return &launcher;
  return nullptr;
}

Result<int> number(const Environment& environment, const char* name) {
  int parsed = 0;
  const auto status = parse_value(value(environment, name), parsed);
  if (!status) return pass(status, name);
  return parsed;
}

const char* who_says(const RuntimeOptions& options, const Launcher* launcher) {
  return options.ranks >= 0 || !launcher ? "CROSSTIE_RANKS or the program" : launcher->what;
}

Status check_rank(const Job& job, const RuntimeOptions& options, const Launcher* launcher) {
  if (job.ranks < 1)
    return fail(Code::invalid, "a job of {} ranks, as {} says, makes no sense", job.ranks,
                who_says(options, launcher));
  if (job.rank < 0 || job.rank >= job.ranks)
    return fail(Code::invalid,
                "rank {} of {} ranks, as {} says, makes no sense; ranks count from 0, here to {}",
                job.rank, job.ranks, who_says(options, launcher), job.ranks - 1);
  if (job.ranks > Job::kMostRanks)
    return fail(Code::unsupported, "a job of {} ranks; at most {} are supported", job.ranks,
                Job::kMostRanks);
  return {};
}

Status find_rank(Job& job, const RuntimeOptions& options, const Launcher* launcher,
                 const Environment& environment) {
  if ((options.rank < 0) != (options.ranks < 0)) {
    return fail(Code::invalid, "CROSSTIE_{} is not set, and CROSSTIE_{} is; set both, or neither",
                options.rank < 0 ? "RANK" : "RANKS", options.rank < 0 ? "RANKS" : "RANK");
  } else if (options.rank >= 0) {
    job.rank = options.rank, job.ranks = options.ranks;
  } else if (!launcher && (environment.find("RANK") || environment.find("WORLD_SIZE"))) {
    return fail(Code::invalid, "of RANK and WORLD_SIZE only one is set; set both, or neither");
  } else if (launcher) {
    const auto rank = number(environment, launcher->rank);
    const auto ranks = number(environment, launcher->ranks);
    if (!rank) return pass(rank);
    if (!ranks) return pass(ranks);
    job.rank = *rank, job.ranks = *ranks;
  }
  return check_rank(job, options, launcher);
}

// "[::1]" → "::1".
std::string without_brackets(std::string_view address) {
  const bool has = address.starts_with('[') && address.ends_with(']');
  return std::string(has ? address.substr(1, address.size() - 2) : address);
}

Status set_port(Job& job, std::string_view text, std::string_view where) {
  int port = 0;
  const auto status = parse_value(text, port);
  if (!status) return pass(status, where);
  if (port < 1 || port > 65535 - Job::kPorts)
    return fail(Code::invalid, "{}: {} is not a usable port", where, port);
  job.port = static_cast<uint16_t>(port);
  return {};
}

// Below Linux's ephemeral range (32768-60999), so that no outgoing connection holds it.
uint16_t port_of(uint64_t id) { return static_cast<uint16_t>(20000 + id % 12000); }

bool all_on_this_host(const Job& job, const Launcher* launcher, const Environment& environment) {
  return job.ranks == 1 ||
         (launcher && value(environment, launcher->local_ranks) == std::to_string(job.ranks));
}

Status nowhere(const Job& job, const RuntimeOptions& options, const Launcher* launcher,
               const Environment& environment) {
  if (options.ranks >= 0)
    return fail(Code::invalid,
                "nothing says where rank 0 of these {} ranks is; set "
                "CROSSTIE_ADDRESS to its HOST:PORT on all ranks",
                job.ranks);
  const std::string_view here = launcher ? value(environment, launcher->local_ranks) : "";
  const std::string some = here.empty() ? "" : fmt::format("{} on this host, ", here);
  return fail(Code::invalid,
              "{} starts {} ranks, {}and does not say where rank 0 is; set MASTER_ADDR to its host "
              "on all ranks",
              launcher->what, job.ranks, some);
}

// Without a port it follows from the launcher's name for the job; where there is no such name
// either, all jobs of a host would meet at one port.
bool has_id(const Launcher* launcher, const Environment& environment) {
  return launcher && std::ranges::any_of(launcher->id, [&](const char* name) {
           return environment.find(name) != nullptr;
         });
}

Digest id_of(const Launcher& launcher, const Environment& environment) {
  Digest id;
  for (const char* name : launcher.id) id.add(value(environment, name));
  return id;
}

Status find_port(Job& job, const Launcher* launcher, const Environment& environment) {
  job.port = port_of(job.id);
  const std::string* port = environment.find("MASTER_PORT");
  if (!port && job.ranks > 1 && !has_id(launcher, environment))
    return fail(Code::invalid,
                "nothing tells this job of {} ranks from others on rank 0's host; set MASTER_PORT "
                "(or CROSSTIE_ADDRESS=HOST:PORT) on all ranks",
                job.ranks);
  if (!port) return {};
  const auto set = set_port(job, *port, "MASTER_PORT");
  // torchrun's agent keeps MASTER_PORT for its own store.
  if (set && environment.find("TORCHELASTIC_USE_AGENT_STORE")) job.port++;
  return set;
}

Status parse_address(Job& job, std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view host = text.substr(0, colon);
  // Of figures without brackets nobody knows which is the port.
  if (colon == text.npos || without_brackets(host).empty() ||
      (host.find(':') != host.npos && !host.starts_with('[')))
    return fail(Code::invalid, "CROSSTIE_ADDRESS: '{}' is not HOST:PORT, nor [IPV6]:PORT", text);
  job.address = without_brackets(host);
  return set_port(job, text.substr(colon + 1), "CROSSTIE_ADDRESS");
}

Status find_address(Job& job, const RuntimeOptions& options, const Launcher* launcher,
                    const Environment& environment) {
  if (!options.address.empty()) return parse_address(job, options.address);
  job.address = without_brackets(value(environment, "MASTER_ADDR"));
  if (job.address.empty()) job.address = first_host(value(environment, "SLURM_STEP_NODELIST"));
  if (job.address.empty() && all_on_this_host(job, launcher, environment))
    job.address = "127.0.0.1";
  if (job.address.empty()) return nowhere(job, options, launcher, environment);
  return find_port(job, launcher, environment);
}

}  // namespace

std::string first_host(std::string_view nodelist) {
  std::string name;
  while (!nodelist.empty() && nodelist.front() != ',') {
    const size_t bracket = nodelist.find_first_of("[,");
    name += nodelist.substr(0, bracket);
    if (bracket == nodelist.npos || nodelist[bracket] == ',') break;
    // Of each group its first number, as it is written.
    nodelist.remove_prefix(bracket + 1);
    name += nodelist.substr(0, nodelist.find_first_of(",-]"));
    nodelist.remove_prefix(std::min(nodelist.find(']'), nodelist.size() - 1) + 1);
  }
  return name;
}

Result<Job> find_job(const RuntimeOptions& options, const Environment& environment) {
  Job job;
  const Launcher* launcher = find_launcher(environment);
  const auto ranked = find_rank(job, options, launcher, environment);
  if (!ranked) return pass(ranked);
  Digest id = launcher ? id_of(*launcher, environment) : Digest();
  job.id = id.value();
  const auto found = find_address(job, options, launcher, environment);
  if (!found) return pass(found);
  job.id = id.add(job.port).value();
  return job;
}

std::optional<LocalJob> find_local_job(const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  if (!has_id(launcher, environment)) return std::nullopt;
  const auto ranks = number(environment, launcher->local_ranks);
  return LocalJob{id_of(*launcher, environment).value(), ranks ? std::max(*ranks, 0) : 0};
}

}  // namespace crosstie
