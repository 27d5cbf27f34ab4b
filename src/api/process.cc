// SPDX-License-Identifier: Apache-2.0
#include "api/process.h"

#include <mutex>

namespace crosstie {
namespace {

std::mutex mutex;
std::weak_ptr<Progress> current;

}  // namespace

Result<std::shared_ptr<Progress>> library_thread() {
  const std::lock_guard lock(mutex);
  if (auto running = current.lock()) return running;
  auto started = Progress::start();
  if (started) current = *started;
  return started;
}

}  // namespace crosstie
