// SPDX-License-Identifier: Apache-2.0
// The one library thread of a process. It moves what nobody waits for and beats the heart; it
// sleeps in the kernel otherwise.
#pragma once
#include <poll.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/result.h"

namespace crosstie {

class Tended {
 public:
  virtual ~Tended() = default;
  // Called by the library thread when a descriptor is readable or the deadline has come. Adds
  // the descriptors to sleep on and returns the next deadline.
  virtual Deadline tend(std::vector<pollfd>& fds) = 0;
};

class Progress {
 public:
  static Result<std::shared_ptr<Progress>> start();
  ~Progress();

  void add(Tended* tended);
  // Once it returns, the thread is not in tend() and will not be again.
  void remove(Tended* tended);
  // Makes the thread tend to all at once.
  void wake();
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  explicit Progress(Fd wake);
  void run();
  Deadline tend_all(std::vector<pollfd>& fds);

  Fd wake_;
  std::mutex mutex_;
  std::vector<Tended*> tended_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace crosstie
