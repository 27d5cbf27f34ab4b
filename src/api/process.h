// SPDX-License-Identifier: Apache-2.0
// The only process-wide state of the library: its one thread, for as long as a communicator
// lives.
#pragma once
#include <memory>

#include "runtime/progress.h"

namespace crosstie {

Result<std::shared_ptr<Progress>> library_thread();

}  // namespace crosstie
