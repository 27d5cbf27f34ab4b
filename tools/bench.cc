// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "command.h"

namespace crosstie::tools {
namespace {

// Processes that a machine of a thousand CPUs could run at once.
constexpr int kMostRanks = 1024;

struct Asked {
  BenchOptions bench;
  int hosts = 0;
  std::vector<int> ranks_per_host;
};

// A size option that takes K, M, G as nccl-tests do.
CLI::Option* add_size(CLI::App& app, const char* name, uint64_t& size, const char* doc) {
  const auto parse = [&size](const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) throw CLI::ValidationError(bytes.error().text);
    size = *bytes;
  };
  return app.add_option_function<std::string>(name, parse, doc)
      ->type_name("SIZE")
      ->default_str(bytes_text(size));
}

// What the kernel would give without swapping; none where it does not tell.
std::optional<uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (uint64_t kibibytes = 0; file >> key >> kibibytes;
       file.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (key == "MemAvailable:") return kibibytes << 10;
  return std::nullopt;
}

// A rank holds what it sends and what it gets. Those that a launcher started beside this one are
// not known here.
Status check_machine(uint64_t bytes, uint64_t ranks) {
  if (ranks > uint64_t{kMostRanks})
    return fail(Code::invalid, "{} ranks on one machine; at most {}", ranks, kMostRanks);
  constexpr double kGigabyte = 1 << 30;
  const auto available = available_memory();
  const double needed = 2.0 * static_cast<double>(bytes) * static_cast<double>(ranks);
  if (!available || needed <= static_cast<double>(*available)) return {};
  return fail(Code::exhausted,
              "--max-bytes {} takes {:.1f} GiB for {} {} here, and {:.1f} GiB of memory are "
              "available",
              bytes_text(bytes), needed / kGigabyte, ranks, ranks == 1 ? "rank" : "ranks",
              static_cast<double>(*available) / kGigabyte);
}

// One that is named twice is measured once.
std::vector<std::string> without_repeats(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names)
    if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  return out;
}

std::vector<int> local_hosts(const Asked& asked) {
  if (asked.ranks_per_host.size() > 1) return asked.ranks_per_host;
  return std::vector<int>(static_cast<size_t>(std::max(asked.hosts, 1)), asked.ranks_per_host[0]);
}

Status check(const Asked& asked) {
  const BenchOptions& bench = asked.bench;
  if (bench.min_bytes < sizeof(float))
    return fail(Code::invalid, "--min-bytes {} holds no f32; give 4 or more", bench.min_bytes);
  if (bench.min_bytes > bench.max_bytes)
    return fail(Code::invalid, "--min-bytes {} is more than --max-bytes {}",
                bytes_text(bench.min_bytes), bytes_text(bench.max_bytes));
  if (asked.hosts > 0 && asked.ranks_per_host.empty())
    return fail(Code::invalid, "--hosts starts local ranks and needs --ranks-per-host");
  if (asked.hosts > 0 && asked.ranks_per_host.size() > 1 &&
      asked.ranks_per_host.size() != static_cast<size_t>(asked.hosts))
    return fail(Code::invalid, "--hosts {}, but --ranks-per-host lists {}", asked.hosts,
                asked.ranks_per_host.size());
  return {};
}

int run(const Asked& asked, const Session& session) {
  const auto checked = check(asked);
  if (!checked) return report(session, checked.error());
  BenchOptions bench = asked.bench;
  bench.algorithms = without_repeats(bench.algorithms);
  const bool joins = asked.ranks_per_host.empty();
  const std::vector<int> hosts = joins ? std::vector<int>{1} : local_hosts(asked);
  const auto ranks = std::accumulate(hosts.begin(), hosts.end(), uint64_t{0});
  const auto fits = check_machine(bench.max_bytes, ranks);
  if (!fits) return report(session, fits.error());
  const auto rank = [&] { return bench_allreduce(bench, session.log); };
  return joins ? rank() : run_local_ranks(hosts, rank, session.log);
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the library's collectives");
  bench->callback([bench, &session] {
    if (!bench->get_subcommands().empty()) return;
    session.run = [&session] {
      session.log.error("a benchmark is required; see 'crosstie bench --help'");
      return kUsage;
    };
  });
  CLI::App* allreduce = bench->add_subcommand(
      "allreduce", "AllReduce of f32 sums on host memory, checked, beside what its Schedule says");
  auto asked = std::make_shared<Asked>();
  BenchOptions& o = asked->bench;
  add_size(*allreduce, "-b,--min-bytes", o.min_bytes, "Smallest message");
  add_size(*allreduce, "-e,--max-bytes", o.max_bytes, "Largest message");
  allreduce->add_option("-f,--factor", o.factor, "From one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  allreduce->add_option("-n,--iters", o.iterations, "Timed calls for each size")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  allreduce->add_option("-w,--warmup", o.warmup, "Calls before them")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  allreduce->add_option("-a,--algorithm", o.algorithms, "One or several, side by side")
      ->type_name("NAME[,NAME]")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "ring", "hierarchical"}))
      ->default_str(o.algorithms[0]);
  allreduce
      ->add_option("--hosts", asked->hosts,
                   "Start ranks here, with so many emulated host boundaries")
      ->check(CLI::Range(1, kMostRanks));
  allreduce
      ->add_option("--ranks-per-host", asked->ranks_per_host,
                   "Start ranks here: so many on each host, or one number a host, as 7,8")
      ->type_name("N[,N]")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostRanks));
  allreduce->add_flag("--json", o.json, "Print JSON, schema 1");
  const std::string inherited = allreduce->get_footer();
  allreduce->footer(
      "A SIZE is in bytes, or with K, M, G or T in powers of 1024, as 64K. Without "
      "--ranks-per-host the process joins the job of its launcher (torchrun, mpirun, "
      "mpiexec, srun). Once a rank started here has failed, the others have 10 seconds to say what "
      "they saw of it, and are then ended." +
      (inherited.empty() ? "" : "\n\n" + inherited));
  allreduce->callback(
      [asked, &session] { session.run = [asked, &session] { return run(*asked, session); }; });
}

}  // namespace crosstie::tools
