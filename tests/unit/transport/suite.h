// SPDX-License-Identifier: Apache-2.0
// The harness of the transports' cases: no Criterion, as they must also run under the thread
// sanitizer. Every case runs in a process of its own, with a deadline.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transport/endpoint.h"
#include "transport/options.h"

namespace crosstie::test {

// Sanitizers cost an order of magnitude; counts shrink with them, never what is checked.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kScale = 5;
#else
inline constexpr int kScale = 1;
#endif

[[noreturn]] void give_up(const char* file, int line, const std::string& text);
#define REQUIRE(condition) \
  ((condition) ? void() : ::crosstie::test::give_up(__FILE__, __LINE__, #condition))
#define REQUIRE_THAT(condition, ...) \
  ((condition) ? void() : ::crosstie::test::give_up(__FILE__, __LINE__, fmt::format(__VA_ARGS__)))

template <class T>
T must(Result<T> result) {
  REQUIRE_THAT(result.has_value(), "{}", result ? "" : result.error().text);
  return std::move(*result);
}
inline void must(const Status& status) {
  REQUIRE_THAT(status.has_value(), "{}", status ? "" : status.error().text);
}

// What is under test.
struct Transport {
  std::string name;
  std::function<Result<std::unique_ptr<Worker>>(const TransportOptions&)> make;
  std::string variant = "";  // how it differs from another of the name
};
std::vector<Transport> transports();
TransportOptions default_options();

struct Case {
  std::string name;
  std::function<void(const Transport&)> run;
  std::string only = "";  // the one transport it is about
};
// In a process of its own; the verdict, "" if it passed.
std::string run_alone(const Case& one, const Transport& transport);
std::vector<Case> moving_cases();
std::vector<Case> ending_cases();
std::vector<Case> meeting_cases();
std::vector<Case> hostile_cases();
std::vector<Case> lane_cases();
std::vector<Case> device_cases();

// A child process with a socket to it; killed with its owner.
class Child {
 public:
  explicit Child(const std::function<void(int socket)>& body);
  ~Child();
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  void signal(int number) const;
  void wait_until_stopped() const;
  // It ends by itself, and well.
  void must_end();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};
void tell(int socket, std::span<const std::byte> bytes);
Blob hear(int socket);

int open_descriptors();

}  // namespace crosstie::test
