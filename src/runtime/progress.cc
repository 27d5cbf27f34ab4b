// SPDX-License-Identifier: Apache-2.0
#include "runtime/progress.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <system_error>

namespace crosstie {
namespace {

// The application's signals are for the application's threads: one that starts meanwhile takes
// none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::shared_ptr<Progress>> Progress::start() {
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail_errno(Code::exhausted, "eventfd");
  std::shared_ptr<Progress> made(new Progress(std::move(wake)));
  const SignalsBlocked blocked;
  try {
    made->thread_ = std::thread([progress = made.get()] { progress->run(); });
  } catch (const std::system_error& error) {
    return fail(Code::exhausted, "cannot start the library's thread: {}", error.what());
  }
  return made;
}

Progress::Progress(Fd wake) : wake_(std::move(wake)) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
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
