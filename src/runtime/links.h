// SPDX-License-Identifier: Apache-2.0
// The endpoints of one communicator. A link is directed: the rank that puts makes the
// connection; the other end answers with the key of its scratch memory, and from then on tells
// how many operations it has completed, since an operation may put only where the one before
// has ended.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "runtime/team.h"
#include "schedule/schedule.h"
#include "transport/endpoint.h"

namespace crosstie {

struct LinkTraffic {
  uint64_t inside_bytes = 0, across_bytes = 0;
};

class Links {
 public:
  // How a peer's endpoint failed.
  struct Lost {
    std::string why;
    Clock::time_point at;
    bool died = false;  // its process has ended, and said no goodbye
  };
  struct Handlers {
    std::function<void(int rank, uint32_t immediate)> notified;
    std::function<void()> put_done;
    std::function<void(int rank, uint64_t operation, std::string_view call)> declared;
  };
  // Memory of a running operation.
  struct Memory {
    std::span<std::byte> in, out;
  };

  // A Worker, which of its devices to leave by, and how.
  struct Carrier {
    std::unique_ptr<Worker> worker;
    size_t device = 0;
    Service service;
  };

  // inside, across: for peers on this host and on others; either may have no Worker where there
  // are none. The scratch buffer is the Links' from here on.
  static Result<Links> make(int ranks, Carrier inside, Carrier across, Buffer scratch);

  std::span<std::byte> scratch() const { return scratch_.bytes(); }

  // Begins to connect to the peers that a Program puts to or signals, if not yet. One that
  // cannot be reached is lost(). Fails where it is this process that cannot.
  Status open(const Team& team, const std::vector<int>& peers);
  // Registers an operation's memory as the source of puts; the one before is forgotten.
  Status attach(const Memory& memory);
  void detach();

  // `again` also while the peer is not connected, or has not completed `operation` - 1.
  Posted put(int peer, Space space, uint64_t from, uint64_t bytes, uint64_t to, uint32_t immediate,
             uint64_t operation);
  // Tells a peer to which a link is open what this rank is about to do, in at most kMostDeclared
  // bytes; `again` as for put().
  Posted declare(int peer, uint64_t operation, std::string_view call);
  static constexpr size_t kMostDeclared = 128;
  // Tells the peers with links to us how many operations are complete here.
  void announce(uint64_t completed);
  // Whether it holds for every peer that we put to and what it has completed.
  bool all_peers(const std::function<bool(int rank, uint64_t completed)>& holds) const;

  Status poll(const Handlers& handlers);
  // Whether it is safe to sleep on the descriptors.
  bool arm();
  std::vector<int> fds() const;

  // A rank that needs nothing more: what it should still be told is dropped.
  void retire(int rank);
  // Whether puts of that rank's can still arrive.
  bool hears(int rank) const;
  // By rank; the first failure of each.
  const std::map<int, Lost>& lost() const { return lost_; }
  LinkTraffic traffic() const;
  void close_all();

 private:
  // A carrier and what belongs to it.
  struct Wing : Carrier {
    RegionId scratch{}, in{}, out{};
    std::map<EndpointId, int> peers;  // rank at the other end, both directions
  };
  struct Outgoing {
    Wing* wing = nullptr;
    EndpointId endpoint{};
    Blob key;  // empty until the peer has answered; `endpoint` means nothing where it never will
    uint64_t completed = 0;
    bool retired = false;
  };
  struct Incoming {
    Wing* wing = nullptr;
    EndpointId endpoint{};
    int rank = -1;
    bool failed = false;
    bool greeted = false;
    uint64_t announced = 0;
  };

  Status poll(Wing& wing, const Handlers& handlers);
  void handle(Wing& wing, Event& event, const Handlers& handlers);
  void accepted(Wing& wing, const Event& event);
  void heard(int rank, const Event& event, const Handlers& handlers);
  void failed(int rank, Event& event);
  void lose(int rank, std::string why, bool died);
  void flush_announcements();
  void greet(Incoming& link);

  int ranks_ = 0;  // no peer has a higher number
  Buffer scratch_;
  std::array<std::unique_ptr<Wing>, 2> wings_;  // inside, across
  std::map<int, Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<Event> events_;
  uint64_t completed_ = 0;
  bool attached_ = false;
  std::map<int, Lost> lost_;
  LinkTraffic closed_;  // of links that are no more
};

}  // namespace crosstie
