// SPDX-License-Identifier: Apache-2.0
#include "runtime/health.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
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

Result<std::unique_ptr<Health>> Health::make(int rank, int ranks, Star star,
                                             Clock::duration bound) {
  auto poller = Poller::create();
  if (!poller) return pass(poller);
  Fd news(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news) return fail_errno(Code::exhausted, "eventfd");
  std::unique_ptr<Health> made(new Health(rank, ranks, bound, std::move(*poller), std::move(news)));
  Status added;
  if (star.hub) added = made->add(0, std::move(star.hub));
  for (size_t i = 1; added && i < star.spokes.size(); i++)
    added = made->add(static_cast<int>(i), std::move(star.spokes[i]));
  if (!added) return pass(added);
  return made;
}

Health::Health(int rank, int ranks, Clock::duration bound, Poller poller, Fd news)
    : rank_(rank),
      ranks_(ranks),
      bound_(bound),
      interval_(bound / kBeatsPerBound),
      poller_(std::move(poller)),
      news_(std::move(news)),
      next_beat_(Clock::now()) {}

Status Health::add(int rank, Channel channel) {
  const auto added = poller_.add(channel.fd(), EPOLLIN, static_cast<Poller::Tag>(rank));
  peers_.push_back({rank, std::move(channel), Clock::now(), 0, false});
  return added;
}

Health::Peer* Health::find(int rank) {
  const auto at = static_cast<size_t>(is_hub() ? rank - 1 : rank);
  return at < peers_.size() ? &peers_[at] : nullptr;
}

Deadline Health::beat() {
  const auto now = Clock::now();
  stood_still_ = now > next_beat_ + bound_ - interval_;
  hear_all(now);
  const bool due = beat_is_due(now);
  if (due) find_silent(now);
  send_verdict();  // before the leavers: it may be the reason why they left
  send_leavers();
  if (due) send_beat();
  return next_beat();
}

// As many looks as it takes to hear each peer once.
void Health::hear_all(Clock::time_point now) {
  for (size_t heard = 0; heard <= peers_.size();) {
    const auto ready = poller_.look();
    if (!ready || ready->empty()) return;
    heard += ready->size();
    for (const Poller::Ready& one : *ready) hear(*find(static_cast<int>(one.tag)), now);
  }
}

void Health::hear(Peer& peer, Clock::time_point now) {
  while (peer.channel) {
    const auto frame = peer.channel.receive();
    if (!frame) return lose(peer);
    if (!*frame) return flush(peer);
    peer.heard = now;
    hear_frame(peer, **frame);
  }
}

// One that has itself been silent beyond the bound finds that the others have given it up.
void Health::lose(Peer& peer) {
  if (!stood_still_) return declare_dead(peer, "its connection closed");
  hang_up(peer);
  accuse({rank_, fmt::format("stood still for longer than {}, and the others have given it up",
                             duration_text(std::chrono::nanoseconds(bound_)))});
}

void Health::hear_frame(Peer& peer, const Frame& frame) {
  uint64_t entered = 0;
  int rank = -1, used = 0;
  const char* text = frame.payload.c_str();
  if (frame.type == kBeat && is_hub() && std::sscanf(text, "%" SCNu64, &entered) == 1) {
    somebody_entered_ |= peer.entered != entered;
    peer.entered = entered;
  } else if (frame.type == kBeat && std::sscanf(text, "%d %" SCNu64, &rank, &entered) == 2 &&
             is_rank(rank)) {
    note_last({rank, entered});
  } else if (frame.type == kVerdict && std::sscanf(text, "%d %n", &rank, &used) == 1 &&
             is_rank(rank)) {
    accuse({rank, text + used});
  } else if (frame.type == kLeft) {
    hear_leavers(text);
  }
}

void Health::hear_leavers(const char* text) {
  for (char* end = nullptr;; text = end) {
    const auto rank = static_cast<int>(std::strtol(text, &end, 10));
    if (end == text || !is_rank(rank)) return;
    const uint64_t completed = std::strtoull(text = end, &end, 10);
    if (end == text) return;
    note_left({rank, completed});
  }
}

// What cannot be sent shows when the peer is heard next.
void Health::send(Peer& peer, const Packed& frame) {
  if (!peer.channel) return;
  static_cast<void>(peer.channel.send(frame));
  flush(peer);
}

void Health::send_all(uint8_t type, const std::string& payload) {
  const Packed frame = pack(type, payload);
  for (Peer& peer : peers_) send(peer, frame);
}

void Health::flush(Peer& peer) {
  const bool blocked =
      peer.channel.has_unsent() && peer.channel.flush() && peer.channel.has_unsent();
  if (std::exchange(peer.blocked, blocked) == blocked) return;
  poller_.change(peer.channel.fd(), EPOLLIN | (blocked ? EPOLLOUT : 0u),
                 static_cast<Poller::Tag>(peer.rank));
}

// Between regular beats, not too often: when this rank is in a hurry, and on rank 0 when another
// one than was told is the last.
bool Health::beat_is_due(Clock::time_point now) {
  if (now >= next_beat_) return true;
  if (!(hurry_ || somebody_entered_) || now < last_look_ + kBetweenBeats) return false;
  last_look_ = now;
  somebody_entered_ = false;
  return hurry_ || compute_last() != told_;
}

Deadline Health::next_beat() const {
  const bool soon = hurry_ || somebody_entered_;
  return Deadline(soon ? std::min(next_beat_, last_look_ + kBetweenBeats) : next_beat_);
}

void Health::send_beat() {
  const auto now = Clock::now();
  last_look_ = now;
  next_beat_ = now + interval_;
  hurry_ = false;
  if (!is_hub()) return send_all(kBeat, std::to_string(entered_.load()));
  const Last last = told_ = compute_last();
  note_last(last);
  send_all(kBeat, fmt::format("{} {}", last.rank, last.entered));
}

// Silence counts only while we listen: if this process itself stood still, its peers get a whole
// interval to be heard.
void Health::find_silent(Clock::time_point now) {
  const bool stood_still = now > next_beat_ + interval_;
  for (Peer& peer : peers_) {
    if (stood_still) peer.heard = std::max(peer.heard, now - bound_ + interval_);
    if (peer.channel && now - peer.heard > bound_)
      declare_dead(peer, fmt::format("no sign of life for {}",
                                     duration_text(std::chrono::nanoseconds(bound_))));
  }
}

Health::Last Health::compute_last() const {
  Last last{rank_, entered_.load()};
  for (const Peer& peer : peers_)
    if (peer.channel && peer.entered < last.entered) last = {peer.rank, peer.entered};
  return last;
}

void Health::hang_up(Peer& peer) {
  if (!peer.channel) return;
  poller_.remove(peer.channel.fd());
  peer.channel.end();
  peer.channel.close();
}

void Health::declare_dead(Peer& peer, const std::string& how) {
  hang_up(peer);
  accuse({peer.rank, "is dead: " + how});
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
  {
    const std::lock_guard lock(mutex_);
    verdict_told_ = true;
  }
  told_changed_.notify_all();
}

void Health::wait_until_told(Deadline deadline) {
  std::unique_lock lock(mutex_);
  told_changed_.wait_until(lock, deadline.at(), [this] { return verdict_told_; });
}

void Health::note_left(Leaver leaver) {
  if (Peer* peer = find(leaver.rank)) hang_up(*peer);
  {
    const std::lock_guard lock(mutex_);
    left_[leaver.rank] = leaver.completed;
  }
  if (is_hub()) leavers_.push_back(leaver);
  raise_news();
}

// All that left since the last time in one frame: at the end of a job everyone does.
void Health::send_leavers() {
  if (leavers_.empty()) return;
  std::string text;
  for (const Leaver& leaver : std::exchange(leavers_, {}))
    text += fmt::format("{} {} ", leaver.rank, leaver.completed);
  send_all(kLeft, text);
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

// Ends each connection, and hears the others out until they end theirs: the kernel resets one that
// is closed with input unread, and our last word could be lost.
void Health::leave(uint64_t completed, Deadline deadline) {
  send_verdict();
  if (const auto found = verdict())
    if (Peer* accused = find(found->rank)) hang_up(*accused);
  leavers_.push_back({rank_, completed});
  send_leavers();
  const auto is_open = [](const Peer& peer) { return static_cast<bool>(peer.channel); };
  for (Peer& peer : peers_)
    if (is_open(peer) && !peer.blocked) peer.channel.end();
  while (std::any_of(peers_.begin(), peers_.end(), is_open) && !deadline.expired()) {
    pollfd item{poller_.fd(), POLLIN, 0};
    poll(&item, 1, deadline.poll_ms());
    const auto ready = poller_.look();
    if (!ready) return;
    for (const Poller::Ready& one : *ready) part(*find(static_cast<int>(one.tag)));
  }
}

void Health::part(Peer& peer) {
  if (std::exchange(peer.blocked, false)) {
    flush(peer);
    if (!peer.blocked) peer.channel.end();
  }
  for (;;) {
    const auto frame = peer.channel.receive();
    if (!frame) return hang_up(peer);
    if (!*frame) return;
  }
}

}  // namespace crosstie
