// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/handle.h"
#include "bench.h"
#include "command.h"

namespace crosstie::tools {
namespace {

// A port of loopback that is free now.
Result<uint16_t> free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd || bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0)
    return fail_errno(Code::io, "no free port on loopback");
  return ntohs(address.sin_port);
}

struct Place {
  int rank, ranks, host;
};

void set_environment(const Place& place, uint16_t port) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  set("CROSSTIE_RANK", std::to_string(place.rank));
  set("CROSSTIE_RANKS", std::to_string(place.ranks));
  set("CROSSTIE_ADDRESS", fmt::format("127.0.0.1:{}", port));
  set("CROSSTIE_HOST", fmt::format("host{}", place.host));
}

// Ends with its parent, however that ends.
[[noreturn]] void be_rank(const Place& place, uint16_t port, pid_t parent,
                          const std::function<int()>& rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCouldNotLook);
  set_environment(place, port);
  const int code = rank();
  fflush(nullptr);
  _exit(code);
}

int wait_for(pid_t pid, int rank, const Log& log) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  log.error("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
  return kCouldNotLook;
}

}  // namespace

int run_local_ranks(const std::vector<int>& ranks_of_host, const std::function<int()>& rank,
                    const Log& log) {
  const auto port = free_port();
  if (!port) {
    log.error("{}", port.error().text);
    return kCouldNotLook;
  }
  std::vector<int> host_of;
  for (size_t h = 0; h < ranks_of_host.size(); h++)
    host_of.insert(host_of.end(), static_cast<size_t>(ranks_of_host[h]), static_cast<int>(h));
  const auto ranks = static_cast<int>(host_of.size());
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; r++) {
    const pid_t pid = fork();
    if (pid == 0) be_rank({r, ranks, host_of[static_cast<size_t>(r)]}, *port, parent, rank);
    if (pid < 0) log.error("cannot start rank {}: {}", r, strerror(errno));
    children.push_back(pid);
  }
  int worst = kClean;
  for (int r = 0; r < ranks; r++)
    worst = std::max(worst, children[static_cast<size_t>(r)] < 0
                                ? static_cast<int>(kCouldNotLook)
                                : wait_for(children[static_cast<size_t>(r)], r, log));
  return worst;
}

}  // namespace crosstie::tools
