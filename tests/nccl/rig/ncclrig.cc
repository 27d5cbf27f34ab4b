// SPDX-License-Identifier: Apache-2.0
// ncclrig: forks nodes x gpus ranks, each driving the stock libnccl.so.2 on an emulated GPU, and
// enqueues collectives. What NCCL and its plugins say lies in the log directory, a file a rank.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "rank.h"
#include "topo.h"

namespace {

void describe(CLI::App& app, Options& options) {
  const CLI::AsSizeValue size(false);
  app.option_defaults()->take_last();
  app.add_option("--nodes", options.nodes)->check(CLI::PositiveNumber);
  app.add_option("--gpus-per-node", options.gpus)->check(CLI::Range(1, 8));
  app.add_option("--coll", options.collectives)
      ->delimiter(',')
      ->take_all()
      ->check(CLI::IsMember({"allreduce", "allgather", "reducescatter", "broadcast", "reduce"}));
  app.add_option("--min-bytes", options.min_bytes)->transform(size)->check(CLI::PositiveNumber);
  app.add_option("--max-bytes", options.max_bytes)->transform(size);
  app.add_option("--factor", options.factor)->check(CLI::Range(2, 1024));
  app.add_option("--rounds", options.rounds, "communicators, one after the other");
  app.add_option("--names", options.names, "of the communicators, in turn")
      ->delimiter(',')
      ->take_all();
  app.add_flag("--keep", options.keep, "destroy no communicator before the last is used");
  app.add_flag("--init-only", options.init_only, "communicators without collectives");
  app.add_flag("--abort", options.abort, "on one node too: a profiler waits for kernels' times");
  app.add_option("--machine", options.machine, "every node's NCCL topology file; its GPUs are used")
      ->check(CLI::ExistingFile);
  app.add_option("--timeout", options.timeout_s, "seconds");
  app.add_option("--nccl", options.nccl)->default_val(NCCL_LIBRARY);
  app.add_option("--logdir", options.log_dir)->required();
}

std::string read_file(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(name).rdbuf();
  return text.str();
}

bool prepare(Options& options) {
  mkdir(options.log_dir.c_str(), 0755);
  const std::string xml =
      options.machine.empty() ? make_topology(options.gpus) : read_file(options.machine);
  const Contents machine = contents(xml);
  options.gpus = static_cast<int>(machine.gpus.size());
  std::ofstream(options.log_dir + "/topology.xml") << xml;
  setenv("NCCLRIG_BUSIDS", fmt::format("{}", fmt::join(machine.gpus, ",")).c_str(), 1);
  setenv("NCCLRIG_NETS", fmt::format("{}", fmt::join(machine.nets, ",")).c_str(), 1);
  if (options.gpus == 0) fprintf(stderr, "%s has no GPUs\n", options.machine.c_str());
  return options.gpus > 0;
}

pid_t start_rank(int rank, const Options& options, Shared& shared) {
  const pid_t pid = fork();
  if (pid == 0) Rank(rank, options, shared).run();
  return pid;
}

// First failure of any rank, or 0. One that dies without a word still stops the others.
int wait_for(const std::vector<pid_t>& children, Shared& shared) {
  int first = 0;
  for (size_t i = 0; i < children.size(); i++) {
    int raw = 0;
    const pid_t pid = waitpid(-1, &raw, 0);
    const int status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    if (!status) continue;
    fprintf(stderr, "rank of pid %d ended with %d%s\n", (int)pid, status,
            status == 128 + SIGALRM ? " (timeout)" : "");
    shared.failed++;
    if (!first) first = status;
  }
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The stock libnccl.so.2 without a GPU");
  describe(app, options);
  CLI11_PARSE(app, argc, argv);
  if (!prepare(options)) return kUsage;
  load_libraries(options.nccl);
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared{};
  std::vector<pid_t> children;
  for (int r = 0; r < options.ranks(); r++) children.push_back(start_rank(r, options, shared));
  return wait_for(children, shared);
}
