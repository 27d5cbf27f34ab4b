// SPDX-License-Identifier: Apache-2.0
#include "api/process.h"

#include <unistd.h>

#include <mutex>

namespace crosstie {
namespace {

std::mutex mutex;
std::weak_ptr<Progress> current;
pid_t owner = -1;  // of it: a forked child has none of its parent's threads

}  // namespace

Result<std::shared_ptr<Progress>> library_thread() {
  const std::lock_guard lock(mutex);
  if (auto running = current.lock(); running && owner == getpid()) return running;
  auto started = Progress::start();
  if (started) current = *started, owner = getpid();
  return started;
}

}  // namespace crosstie
