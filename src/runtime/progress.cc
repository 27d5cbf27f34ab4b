// SPDX-License-Identifier: Apache-2.0
#include "runtime/progress.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>

namespace crosstie {
namespace {

// The application's signals are for the application's threads.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Progress::Progress() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
}

void Progress::add(Tended* tended) {
  {
    const std::lock_guard lock(mutex_);
    tended_.push_back(tended);
  }
  wake();
}

void Progress::remove(Tended* tended) {
  const std::lock_guard lock(mutex_);
  std::erase(tended_, tended);
  wake();  // its descriptors are about to be closed
}

void Progress::wake() { eventfd_write(wake_.get(), 1); }

void Progress::run() {
  block_signals();
  pthread_setname_np(pthread_self(), "crosstie");
  std::vector<pollfd> fds;
  for (;;) {
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    fds.assign(1, {wake_.get(), POLLIN, 0});
    const Deadline next = tend_all(fds);
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    poll(fds.data(), fds.size(), next.poll_ms());
  }
}

Deadline Progress::tend_all(std::vector<pollfd>& fds) {
  const std::lock_guard lock(mutex_);
  Deadline next(std::chrono::hours(1));
  for (Tended* tended : tended_) next = next.sooner(tended->tend(fds));
  return next;
}

}  // namespace crosstie
