// SPDX-License-Identifier: Apache-2.0
#include "api/process.h"

#include <mutex>

namespace crosstie {
namespace {

std::mutex mutex;
std::weak_ptr<Progress> current;

}  // namespace

std::shared_ptr<Progress> library_thread() {
  const std::lock_guard lock(mutex);
  auto thread = current.lock();
  if (!thread) current = thread = std::make_shared<Progress>();
  return thread;
}

}  // namespace crosstie
