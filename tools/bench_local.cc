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
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "base/deadline.h"
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

class Children {
 public:
  explicit Children(const Log& log) : log_(log) {}

  void start(const Place& place, uint16_t port, const std::function<int()>& rank) {
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) be_rank(place, port, parent, rank);
    if (pid < 0) note(place.rank, fmt::format("cannot be started: {}", strerror(errno)));
    if (pid > 0) running_[pid] = place.rank;
  }

  // The worst exit code. Once one has failed the others have so long to say what they saw of it.
  int wait() {
    while (!running_.empty()) {
      reap();
      if (worst_ > kFindings && !patience_) patience_ = Deadline(kPatience);
      if (patience_ && patience_->expired()) end_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return worst_;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(10);

  void note(int rank, const std::string& what) {
    log_.error("rank {} {}", rank, what);
    worst_ = kCouldNotLook;
  }

  void reap() {
    for (auto it = running_.begin(); it != running_.end();) {
      int status = 0;
      const pid_t ended = waitpid(it->first, &status, WNOHANG);
      if (ended == 0) {
        ++it;
        continue;
      }
      if (ended > 0 && WIFEXITED(status))
        worst_ = std::max(worst_, WEXITSTATUS(status));
      else if (ended > 0)
        note(it->second, fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                     strsignal(WTERMSIG(status))));
      else
        note(it->second, "ended unseen");
      it = running_.erase(it);
    }
  }

  void end_all() {
    for (const auto& [pid, rank] : running_) kill(pid, SIGKILL);
  }

  const Log& log_;
  std::map<pid_t, int> running_;  // and its rank
  int worst_ = kClean;
  std::optional<Deadline> patience_;
};

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
  Children children(log);
  for (int r = 0; r < ranks; r++)
    children.start({r, ranks, host_of[static_cast<size_t>(r)]}, *port, rank);
  return children.wait();
}

}  // namespace crosstie::tools
