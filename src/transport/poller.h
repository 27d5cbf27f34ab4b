// SPDX-License-Identifier: Apache-2.0
// The descriptors and deadlines of a Worker behind one epoll descriptor, so that whoever sleeps
// on it is woken by either.
#pragma once
#include <sys/epoll.h>

#include <array>
#include <set>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/result.h"

namespace crosstie {

class Poller {
 public:
  using Tag = uint64_t;
  struct Ready {
    Tag tag = 0;
    uint32_t events = 0;  // EPOLLIN, ...
  };

  static Result<Poller> create();
  int fd() const { return epoll_.get(); }

  // Level-triggered. A descriptor must be removed before it is closed: a child that the process
  // forked may hold it open, and then it would stay ready for ever.
  Status add(int fd, uint32_t events, Tag tag);
  void change(int fd, uint32_t events, Tag tag);
  void remove(int fd);
  // What is ready now. Valid until the next call.
  Result<std::span<const Ready>> look();

  // One alarm a tag; setting it anew replaces it.
  void set_alarm(Tag tag, Clock::time_point at);
  void cancel_alarm(Tag tag);
  // The tags whose time has come, in order of time; their alarms are gone.
  std::vector<Tag> ring_alarms();

 private:
  Poller(Fd epoll, Fd timer) : epoll_(std::move(epoll)), timer_(std::move(timer)) {}
  void set_timer();

  Fd epoll_, timer_;
  std::set<std::pair<Clock::time_point, Tag>> alarms_;
  std::array<Ready, 64> ready_;
};

// A listening socket among a Poller's descriptors.
class Acceptor {
 public:
  explicit Acceptor(Poller::Tag tag) : tag_(tag) {}
  explicit operator bool() const { return static_cast<bool>(socket_); }

  Status start(Poller& poller, Fd socket);
  void stop(Poller& poller);
  // The connections waiting, a bounded number of them. When descriptors have run out it rests a
  // little, since the socket would stay ready and keep the caller awake for nothing.
  std::vector<Fd> accept(Poller& poller, std::string* trouble);
  void resume(Poller& poller);

 private:
  Poller::Tag tag_;
  Fd socket_;
};

}  // namespace crosstie
