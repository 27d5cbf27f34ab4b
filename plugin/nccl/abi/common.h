// SPDX-License-Identifier: Apache-2.0
// What all of NCCL's plugin interfaces share, written down as facts (NCCL 2.19 to 2.32), so that
// plugins are built without NCCL's headers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace crosstie::nccl::abi {

enum Result : int { kSuccess = 0 };  // ncclResult_t

enum LogLevel : int { kLogWarn = 2, kLogInfo = 3 };  // ncclDebugLogLevel
enum LogSubsystem : unsigned long {                  // bits
  kLogInit = 0x1,
  kLogTuning = 0x40,
  kLogProfile = 0x4000,
};

// Filters by NCCL_DEBUG and NCCL_DEBUG_SUBSYS itself; may be called from any thread.
using Logger = void (*)(LogLevel, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);

}  // namespace crosstie::nccl::abi
