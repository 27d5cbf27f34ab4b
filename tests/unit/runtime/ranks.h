// SPDX-License-Identifier: Apache-2.0
// Real ranks for tests: processes that call the C API as any program would, on host boundaries
// drawn by hand, whose words and ends the test sees.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace crosstie::test {

struct End {
  bool ended = false;  // by the deadline
  int code = -1;       // exit code, or 128 + the signal
  std::string said;    // what it wrote to stdout and stderr
  double seconds = 0;  // from its start
};

class Ranks {
 public:
  // ranks_of_host[h] ranks on host "host<h>"; each runs body(rank) and exits with its result.
  // `variables` are added to their environment. They meet at `address`.
  Ranks(const std::vector<int>& ranks_of_host, const std::function<int(int rank)>& body,
        const std::vector<std::pair<std::string, std::string>>& variables = {},
        const std::string& address = "127.0.0.1");
  // Ends what still runs.
  ~Ranks();

  int count() const { return static_cast<int>(processes_.size()); }
  pid_t pid(int rank) const { return processes_[static_cast<size_t>(rank)].pid; }
  // Collects all but `except`, who get `patience` in all.
  std::vector<End> wait(std::chrono::milliseconds patience, int except = -1);

 private:
  struct Process {
    pid_t pid = -1;
    int output = -1;
    std::chrono::steady_clock::time_point started;
    End end;
  };
  void start(int rank, int host, const std::function<int(int)>& body,
             const std::vector<std::pair<std::string, std::string>>& variables,
             const std::string& place, int total);
  static void look(Process& process);

  std::vector<Process> processes_;
};

}  // namespace crosstie::test
