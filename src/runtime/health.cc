// SPDX-License-Identifier: Apache-2.0
#include "runtime/health.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/units.h"

namespace crosstie {
namespace {

enum Type : uint8_t {
  kBeat = 'b',     // member: "ENTERED"; rank 0: "RANK ENTERED" of the last one
  kVerdict = 'v',  // "RANK WHY"
  kLeft = 'l',     // "RANK COMPLETED"
};

// Six signs fit into the bound, so that one delayed by a busy machine is no death.
constexpr int kBeatsPerBound = 6;
constexpr auto kBetweenBeats = std::chrono::milliseconds(100);

}  // namespace

Health::Health(int rank, int ranks, Star star, Clock::duration bound)
    : rank_(rank),
      ranks_(ranks),
      bound_(bound),
      interval_(bound / kBeatsPerBound),
      next_beat_(Clock::now()),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      heard_(epoll_create1(EPOLL_CLOEXEC)) {
  if (star.hub) add(0, std::move(star.hub));
  for (size_t i = 1; i < star.spokes.size(); i++)
    add(static_cast<int>(i), std::move(star.spokes[i]));
}

void Health::add(int rank, Channel channel) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(heard_.get(), EPOLL_CTL_ADD, channel.fd(), &event);
  peers_.push_back({rank, std::move(channel), Clock::now(), 0});
}

Deadline Health::beat() {
  const auto woken = Clock::now();
  for (Peer& peer : peers_)
    if (peer.channel) hear(peer);
  // Silence counts only while we listen: if this process itself stood still, its peers get a
  // whole interval to be heard.
  const bool stood_still = woken > next_beat_ + interval_;
  for (Peer& peer : peers_) {
    if (stood_still) peer.heard = std::max(peer.heard, woken - bound_ + interval_);
    if (peer.channel && woken - peer.heard > bound_)
      declare_dead(peer.rank, fmt::format("no sign of life for {}",
                                          duration_text(std::chrono::nanoseconds(bound_))));
  }
  send_verdict();
  if (beat_is_due(woken)) {
    send_beat();
    last_beat_ = woken;
    next_beat_ = woken + interval_;
  }
  return Deadline(next_beat_);
}

void Health::hear(Peer& peer) {
  for (;;) {
    const auto frame = peer.channel.receive();
    if (!frame) return declare_dead(peer.rank, "its connection closed");
    if (!*frame) break;
    peer.heard = Clock::now();
    hear_frame(peer, **frame);
    if (!peer.channel) return;
  }
  static_cast<void>(peer.channel.flush());
}

void Health::hear_frame(Peer& peer, const Frame& frame) {
  uint64_t entered = 0, completed = 0;
  int rank = -1, used = 0;
  const char* text = frame.payload.c_str();
  if (frame.type == kBeat && is_hub() && std::sscanf(text, "%" SCNu64, &entered) == 1) {
    peer.entered = entered;
  } else if (frame.type == kBeat && std::sscanf(text, "%d %" SCNu64, &rank, &entered) == 2 &&
             is_rank(rank)) {
    note_last({rank, entered});
  } else if (frame.type == kVerdict && std::sscanf(text, "%d %n", &rank, &used) == 1 &&
             is_rank(rank)) {
    accuse({rank, text + used});
  } else if (frame.type == kLeft && std::sscanf(text, "%d %" SCNu64, &rank, &completed) == 2) {
    note_left(rank, completed);
  }
}

void Health::send_all(uint8_t type, const std::string& payload) {
  // What cannot be sent shows when the peer is heard next.
  for (Peer& peer : peers_)
    if (peer.channel) static_cast<void>(peer.channel.send(type, payload));
}

// Between regular beats, not too often: when this rank is in a hurry, and on rank 0 when another
// one than was told is the last.
bool Health::beat_is_due(Clock::time_point now) {
  if (now >= next_beat_) return true;
  if (!(is_hub() && compute_last() != told_) && !hurry_) return false;
  next_beat_ = std::min(next_beat_, last_beat_ + kBetweenBeats);
  return now >= next_beat_;
}

void Health::send_beat() {
  hurry_ = false;
  if (!is_hub()) return send_all(kBeat, std::to_string(entered_.load()));
  const Last last = told_ = compute_last();
  note_last(last);
  send_all(kBeat, fmt::format("{} {}", last.rank, last.entered));
}

Health::Last Health::compute_last() const {
  Last last{rank_, entered_.load()};
  for (const Peer& peer : peers_)
    if (peer.channel && peer.entered < last.entered) last = {peer.rank, peer.entered};
  return last;
}

void Health::declare_dead(int rank, const std::string& how) {
  for (Peer& peer : peers_)
    if (peer.rank == rank) peer.channel.close();
  accuse({rank, "is dead: " + how});
}

void Health::accuse(const Verdict& verdict) {
  {
    const std::lock_guard lock(mutex_);
    if (verdict_) return;
    verdict_ = verdict;
  }
  raise_news();
}

// A member's goes to rank 0, whose goes to all; what comes from rank 0 it knows already.
void Health::send_verdict() {
  const auto found = verdict();
  if (!found || std::exchange(verdict_sent_, true)) return;
  send_all(kVerdict, fmt::format("{} {}", found->rank, found->why));
}

void Health::note_left(int rank, uint64_t completed) {
  for (Peer& peer : peers_)
    if (peer.rank == rank) peer.channel.close();
  {
    const std::lock_guard lock(mutex_);
    left_[rank] = completed;
  }
  raise_news();
  if (!is_hub()) return;
  send_verdict();  // first: it may be the reason why the rank left
  send_all(kLeft, fmt::format("{} {}", rank, completed));
}

void Health::note_last(Last last) {
  const std::lock_guard lock(mutex_);
  last_ = last;
}

void Health::raise_news() { eventfd_write(news_.get(), 1); }

void Health::take_news() {
  eventfd_t count = 0;
  eventfd_read(news_.get(), &count);
}

std::optional<Health::Verdict> Health::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

std::optional<Health::Last> Health::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::optional<uint64_t> Health::left_after(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto left = left_.find(rank);
  return left == left_.end() ? std::nullopt : std::optional(left->second);
}

void Health::leave(uint64_t completed) {
  send_verdict();
  send_all(kLeft, fmt::format("{} {}", rank_, completed));
  const Deadline deadline(std::chrono::seconds(1));
  const auto unsent = [](Peer& peer) {
    return peer.channel && peer.channel.has_unsent() && peer.channel.flush() &&
           peer.channel.has_unsent();
  };
  while (std::any_of(peers_.begin(), peers_.end(), unsent) && !deadline.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace crosstie
