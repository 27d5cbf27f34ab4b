// SPDX-License-Identifier: Apache-2.0
// The suite that any transport must pass. `conformance.t TEXT` runs the cases whose name holds
// TEXT; options are for other harnesses and ignored.
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
#include "transport/shm.h"
#include "transport/tcp.h"

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

// The case's verdict, "" if it passed.
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

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& some : {moving_cases(), ending_cases(), meeting_cases(), hostile_cases(),
                           lane_cases(), device_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

int run_all(std::string_view wanted) {
  int number = 0, failures = 0;
  for (const Transport& transport : transports()) {
    for (const Case& one : all_cases()) {
      const std::string name = fmt::format("{}: {}", transport.name, one.name);
      if (!one.only.empty() && one.only != transport.name) continue;
      if (name.find(wanted) == std::string::npos) continue;
      const auto begin = Clock::now();
      const std::string wrong = run_alone(one, transport);
      const std::chrono::duration<double> took = Clock::now() - begin;
      if (!wrong.empty()) fmt::print("# {}\n", wrong);
      fmt::print("{} {} - {} # {:.2f} s\n", wrong.empty() ? "ok" : "not ok", ++number, name,
                 took.count());
      failures += !wrong.empty();
    }
  }
  fmt::print("1..{}\n", number);
  return failures == 0 ? 0 : 1;
}

}  // namespace

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

std::vector<Transport> transports() {
  return {{"shm", [](const TransportOptions& options) { return make_shm_worker(options, Log()); }},
          {"tcp", [](const TransportOptions& options) { return make_tcp_worker(options, Log()); }}};
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

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
  return crosstie::test::run_all(wanted);
}
