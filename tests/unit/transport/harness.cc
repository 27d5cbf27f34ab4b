// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "suite.h"

namespace crosstie::test {
namespace {

constexpr auto kCaseDeadline = std::chrono::seconds(30);

bool ends_within(pid_t pid, Deadline deadline) {
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd waiting = {process.get(), POLLIN, 0};
  while (::poll(&waiting, 1, deadline.poll_ms()) < 0) {
  }
  return waiting.revents != 0;
}

}  // namespace

std::string run_alone(const Case& one, const Transport& transport) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    one.run(transport);
    std::fflush(stdout);
    std::exit(0);  // the address sanitizer looks for leaks at exit
  }
  setpgid(pid, pid);
  const bool ended = ends_within(pid, Deadline(kCaseDeadline));
  kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!ended) return "it has not ended by its deadline";
  if (WIFSIGNALED(status)) return fmt::format("it was killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
}

void give_up(const char* file, int line, const std::string& text) {
  fmt::print("# {}:{}: {}\n", file, line, text);
  std::fflush(stdout);
  _exit(1);
}

TransportOptions default_options() {
  TransportOptions options = must(read_options<TransportOptions>(kTransportRows, Environment()));
  options.interfaces = "=lo";
  return options;
}

Child::Child(const std::function<void(int)>& body) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  std::fflush(stdout);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    body(ends[1]);
    std::fflush(stdout);
    _exit(0);
  }
  ::close(ends[1]);
  socket_.reset(ends[0]);
}

Child::~Child() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const { REQUIRE(kill(pid_, number) == 0); }

void Child::wait_until_stopped() const {
  int status = 0;
  REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status));
}

void Child::must_end() {
  int status = 0;
  REQUIRE(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  REQUIRE_THAT(status == 0, "the child ended with status {}", status);
}

void tell(int socket, std::span<const std::byte> bytes) {
  REQUIRE(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

Blob hear(int socket) {
  Blob bytes(4096);
  const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
  REQUIRE(got > 0);
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

}  // namespace crosstie::test
