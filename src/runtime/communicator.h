// SPDX-License-Identifier: Apache-2.0
// A group of ranks and their collectives, run in the order of the calls.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "runtime/engine.h"
#include "runtime/health.h"
#include "runtime/job.h"
#include "runtime/links.h"
#include "runtime/progress.h"
#include "runtime/team.h"
#include "schedule/traffic.h"
#include "transport/options.h"

namespace crosstie {

struct AllReduceCall {
  const void* in = nullptr;
  void* out = nullptr;
  uint64_t count = 0;
  DataType type = DataType::f32;
  std::optional<Algorithm> algorithm;               // none: chosen
  std::optional<std::chrono::nanoseconds> timeout;  // none: the options'
  TrafficClass traffic_class = TrafficClass::unknown;
  bool check = false;  // also where the options say so
};

class Communicator : public Tended {
 public:
  struct Request {
    bool done = false;
    Status status;
    Communicator* communicator = nullptr;
  };

  // Collective. `progress` is the process's library thread.
  static Result<std::unique_ptr<Communicator>> create(const Job& job, const RuntimeOptions& options,
                                                      const TransportOptions& transport,
                                                      std::shared_ptr<Progress> progress, Log log);
  // Stays, at most a second, until the peers have all that they need of this rank.
  ~Communicator() override;

  const Team& team() const { return team_; }

  // The request ends by wait() or test(); only then may it be destroyed.
  Status all_reduce(const AllReduceCall& call, std::shared_ptr<Request>& request);
  // For one that nobody waits for at once: the library thread moves it.
  void hand_over();
  // Moves on; whether the request has ended.
  bool test(Request& request);
  void wait(Request& request);

  LinkTraffic traffic();
  struct Forecast {
    Algorithm algorithm = Algorithm::ring;
    Traffic traffic;  // of all ranks together
  };
  Result<Forecast> forecast(const AllReduceCall& call);

  Deadline tend(std::vector<pollfd>& fds) override;

 private:
  struct Prepared {
    Schedule schedule;
    std::shared_ptr<const Program> program;
    std::vector<int> peers;
  };
  // Why a collective cannot end.
  struct Fault {
    Code code = Code::peer;
    int rank = -1;
    std::string why;  // what that rank did
  };
  struct Pending {
    Engine::Operation operation;
    const Prepared* prepared = nullptr;
    std::span<std::byte> in, out;
    Clock::duration timeout{};
    std::shared_ptr<Request> request;
    AllReduceCall call;     // what all ranks must call alike
    bool compares = false;  // it with the others' before it begins
    bool declared = false;  // to the next rank
    bool agreed = false;    // it has begun
  };

  Communicator(Team team, std::unique_ptr<Health> health, Links links,
               const RuntimeOptions& options, std::shared_ptr<Progress> progress, Log log);

  Result<const Prepared*> prepare(Algorithm algorithm);
  Algorithm algorithm_of(const AllReduceCall& call) const;
  Result<Cut> cut_for(const AllReduceCall& call, const Schedule::Frame& frame) const;
  Result<Pending> make_pending(const AllReduceCall& call);

  // With mutex_ held.
  bool drive();
  void start_next();
  bool agreed();
  int neighbour(int distance) const;  // in the order of ranks, round
  void finish();
  void check();
  void check_late(Clock::time_point now);
  std::optional<Fault> fault(Clock::time_point now);
  std::optional<Fault> lost_peer(Clock::time_point now);
  bool needs_more_of(int rank) const;
  void break_down(const Fault& fault);
  void break_down(const Error& error);
  Status poll_links();
  void sleep(std::unique_lock<std::mutex>& lock, Deadline until);
  void settle(Deadline deadline);

  const RuntimeOptions options_;
  const Log log_;
  const Team team_;
  const std::shared_ptr<Progress> progress_;
  const std::unique_ptr<Health> health_;

  std::mutex mutex_;  // what follows, but for the atomic
  Links links_;
  Engine engine_;
  std::map<Algorithm, Prepared> prepared_;
  std::deque<Pending> pending_;               // the first is running, once started
  std::map<uint64_t, std::string> declared_;  // by the rank before us, of collectives to come
  uint64_t posted_ = 0, completed_ = 0;
  Clock::time_point started_;
  bool asked_who_is_last_ = false, warned_late_ = false;
  std::optional<Error> broken_;

  std::atomic<int> waiters_{0};
  std::atomic<uint64_t> visits_{0};  // calls of the application that moved us on
  uint64_t visits_seen_ = 0;         // by the library thread alone
};

}  // namespace crosstie
