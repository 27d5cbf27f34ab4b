// SPDX-License-Identifier: Apache-2.0
#include "transport/poller.h"

#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace crosstie {
namespace {

constexpr Poller::Tag kTimerTag = ~Poller::Tag{0};
constexpr auto kRest = std::chrono::milliseconds(100);
constexpr int kAcceptBatch = 64;

// Clock is CLOCK_MONOTONIC in libstdc++, as the timer is. Zero would disarm it.
itimerspec at_time(Clock::time_point at) {
  const auto ns = std::max<int64_t>(1, std::chrono::nanoseconds(at.time_since_epoch()).count());
  itimerspec spec = {};
  spec.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  return spec;
}

}  // namespace

Result<Poller> Poller::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno(Code::exhausted, "epoll_create1");
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return fail_errno(Code::exhausted, "timerfd_create");
  Poller poller(std::move(epoll), std::move(timer));
  if (const auto added = poller.add(poller.timer_.get(), EPOLLIN, kTimerTag); !added)
    return pass(added);
  return poller;
}

Status Poller::add(int fd, uint32_t events, Tag tag) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno(Code::exhausted, "epoll_ctl");
  return {};
}

void Poller::change(int fd, uint32_t events, Tag tag) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = tag;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Result<std::span<const Poller::Ready>> Poller::look() {
  std::array<epoll_event, std::tuple_size_v<decltype(ready_)>> events;
  const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (n < 0 && errno != EINTR) return fail_errno(Code::io, "epoll_wait");
  size_t count = 0;
  for (int i = 0; i < n; i++) {
    const auto& event = events[static_cast<size_t>(i)];
    if (event.data.u64 != kTimerTag) ready_[count++] = {event.data.u64, event.events};
  }
  return std::span<const Ready>(ready_.data(), count);
}

void Poller::set_timer() {
  const itimerspec spec = alarms_.empty() ? itimerspec{} : at_time(alarms_.begin()->first);
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Poller::set_alarm(Tag tag, Clock::time_point at) {
  std::erase_if(alarms_, [tag](const auto& alarm) { return alarm.second == tag; });
  alarms_.emplace(at, tag);
  set_timer();
}

void Poller::cancel_alarm(Tag tag) {
  if (std::erase_if(alarms_, [tag](const auto& alarm) { return alarm.second == tag; })) set_timer();
}

std::vector<Poller::Tag> Poller::ring_alarms() {
  std::vector<Tag> rung;
  if (alarms_.empty()) return rung;
  const auto now = Clock::now();
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    rung.push_back(alarms_.begin()->second);
    alarms_.erase(alarms_.begin());
  }
  // Setting the time also clears the descriptor.
  if (!rung.empty()) set_timer();
  return rung;
}

Status Acceptor::start(Poller& poller, Fd socket) {
  const auto added = poller.add(socket.get(), EPOLLIN, tag_);
  if (!added) return pass(added);
  socket_ = std::move(socket);
  return {};
}

void Acceptor::stop(Poller& poller) {
  poller.remove(socket_.get());
  socket_.reset();
}

std::vector<Fd> Acceptor::accept(Poller& poller, std::string* trouble) {
  std::vector<Fd> accepted;
  for (int i = 0; i < kAcceptBatch; i++) {
    Fd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      accepted.push_back(std::move(fd));
      continue;
    }
    // Errors of the connection itself (ECONNABORTED and the like) concern nobody else.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      *trouble = fail_errno(Code::exhausted, "cannot accept a connection").value().text;
      poller.change(socket_.get(), 0, tag_);
      poller.set_alarm(tag_, Clock::now() + kRest);
    }
    if (errno != ECONNABORTED) break;
  }
  return accepted;
}

void Acceptor::resume(Poller& poller) { poller.change(socket_.get(), EPOLLIN, tag_); }

}  // namespace crosstie
