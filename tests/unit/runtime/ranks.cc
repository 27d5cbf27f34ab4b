// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace crosstie::test {
namespace {

using Clock = std::chrono::steady_clock;

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

Ranks::Ranks(const std::vector<int>& ranks_of_host, const std::function<int(int)>& body,
             const std::vector<std::pair<std::string, std::string>>& variables,
             const std::string& address) {
  const std::string place = address + ":" + std::to_string(free_port());
  int total = 0, rank = 0;
  for (const int ranks : ranks_of_host) total += ranks;
  for (size_t host = 0; host < ranks_of_host.size(); host++)
    for (int i = 0; i < ranks_of_host[host]; i++)
      start(rank++, static_cast<int>(host), body, variables, place, total);
}

void Ranks::start(int rank, int host, const std::function<int(int)>& body,
                  const std::vector<std::pair<std::string, std::string>>& variables,
                  const std::string& place, int total) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) abort();
  fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    setenv("CROSSTIE_RANK", std::to_string(rank).c_str(), 1);
    setenv("CROSSTIE_RANKS", std::to_string(total).c_str(), 1);
    setenv("CROSSTIE_ADDRESS", place.c_str(), 1);
    setenv("CROSSTIE_HOST", ("host" + std::to_string(host)).c_str(), 1);
    const int code = body(rank);
    fflush(nullptr);
    _exit(code);
  }
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  processes_.push_back({pid, ends[0], Clock::now(), {}});
}

Ranks::~Ranks() {
  for (Process& process : processes_) {
    if (!process.end.ended) {
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
    close(process.output);
  }
}

void Ranks::look(Process& process) {
  int status = 0;
  const bool gone = !process.end.ended && waitpid(process.pid, &status, WNOHANG) == process.pid;
  char text[4096];
  for (ssize_t got; (got = read(process.output, text, sizeof text)) > 0;)
    process.end.said.append(text, static_cast<size_t>(got));
  if (!gone) return;
  process.end.ended = true;
  process.end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  process.end.seconds = std::chrono::duration<double>(Clock::now() - process.started).count();
}

std::vector<End> Ranks::wait(std::chrono::milliseconds patience, int except) {
  const auto until = Clock::now() + patience;
  for (bool all = false; !all && Clock::now() < until;) {
    all = true;
    for (int rank = 0; rank < count(); rank++) {
      Process& process = processes_[static_cast<size_t>(rank)];
      if (!process.end.ended) look(process);
      all = all && (process.end.ended || rank == except);
    }
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::vector<End> ends;
  for (Process& process : processes_) {
    look(process);
    ends.push_back(process.end);
  }
  return ends;
}

}  // namespace crosstie::test
