// SPDX-License-Identifier: Apache-2.0
// Who lives, who is late. Every rank sends a sign of life to rank 0, with the number of the
// collective that it has entered; rank 0 sends its own to all, with the name of the last. A
// connection that closes without a goodbye, or silence beyond the bound, is a death; rank 0
// tells everyone, so all name the same culprit, and not each its own neighbour that fell over. A
// rank whose own collective fails says likewise who is to blame, since that ends it for all.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/handle.h"
#include "runtime/rendezvous.h"
#include "transport/poller.h"

namespace crosstie {

class Health {
 public:
  struct Verdict {
    int rank = -1;
    std::string why;  // what it did: "is dead: its connection closed", "has left the job"
  };
  // The rank that has entered the fewest collectives.
  struct Last {
    int rank = 0;
    uint64_t entered = 0;
    bool operator==(const Last&) const = default;
  };

  static Result<std::unique_ptr<Health>> make(int rank, int ranks, Star star,
                                              Clock::duration bound);

  // ---- for the library thread alone
  // Sends and receives what is due; returns when it is next due.
  Deadline beat();
  // Becomes readable when a peer has spoken.
  int fd() const { return poller_.fd(); }

  // ---- for any thread
  // This rank has entered its n-th collective.
  void entered(uint64_t n) { entered_.store(n, std::memory_order_relaxed); }
  // Makes the next beat come at once: somebody waits, and may soon want to know for whom.
  void hurry() { hurry_.store(true, std::memory_order_relaxed); }
  // The first one, which explains those that follow.
  std::optional<Verdict> verdict() const;
  // To be told to all at the next beat, unless there is a verdict already.
  void accuse(const Verdict& verdict);
  // Until the verdict is on its way, so that this process may end.
  void wait_until_told(Deadline deadline);
  std::optional<Last> last() const;
  // How many collectives a rank had completed when it left; none: it has not left.
  std::optional<uint64_t> left_after(int rank) const;
  // Becomes readable when there is a verdict, or somebody has left; until the news are taken.
  int news_fd() const { return news_.get(); }
  void take_news();
  // Says goodbye, after so many completed collectives; waits until it is heard, or the deadline.
  // The library thread must be done.
  void leave(uint64_t completed, Deadline deadline);

 private:
  struct Peer {
    int rank = 0;
    Channel channel;
    Clock::time_point heard;
    uint64_t entered = 0;
    bool blocked = false;  // its socket is full
  };
  struct Leaver {
    int rank = 0;
    uint64_t completed = 0;
  };

  Health(int rank, int ranks, Clock::duration bound, Poller poller, Fd news);
  Status add(int rank, Channel channel);
  bool is_hub() const { return rank_ == 0; }
  bool is_rank(int rank) const { return rank >= 0 && rank < ranks_; }
  Peer* find(int rank);

  void hear_all(Clock::time_point now);
  void hear(Peer& peer, Clock::time_point now);
  void hear_frame(Peer& peer, const Frame& frame);
  void hear_leavers(const char* text);
  void send(Peer& peer, const Packed& frame);
  void send_all(uint8_t type, const std::string& payload);
  void flush(Peer& peer);
  Deadline next_beat() const;
  bool beat_is_due(Clock::time_point now);
  void send_beat();
  void find_silent(Clock::time_point now);
  void lose(Peer& peer);
  void hang_up(Peer& peer);
  void part(Peer& peer);
  void declare_dead(Peer& peer, const std::string& how);
  void send_verdict();
  void note_left(Leaver leaver);
  void send_leavers();
  void note_last(Last last);
  Last compute_last() const;
  void raise_news();

  const int rank_, ranks_;
  const Clock::duration bound_, interval_;
  Poller poller_;  // tags are ranks
  const Fd news_;
  std::vector<Peer> peers_;  // rank 0's: all others, by rank; else rank 0
  Clock::time_point next_beat_, last_look_{};
  bool verdict_sent_ = false;
  bool stood_still_ = false;       // this process did, for about the bound, before this beat
  std::vector<Leaver> leavers_;    // rank 0: of whom the others are yet to hear
  bool somebody_entered_ = false;  // rank 0: since it last looked who is last
  Last told_;                      // rank 0: who was last when all were told
  std::atomic<uint64_t> entered_{0};
  std::atomic<bool> hurry_{false};

  mutable std::mutex mutex_;  // what follows
  std::optional<Verdict> verdict_;
  bool verdict_told_ = false;
  std::condition_variable told_changed_;
  std::optional<Last> last_;
  std::map<int, uint64_t> left_;  // rank: what it had completed
};

}  // namespace crosstie
