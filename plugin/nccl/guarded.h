// SPDX-License-Identifier: Apache-2.0
// The boundary to NCCL, which is C: nothing that is thrown crosses it.
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl {

// Runs the body. What cannot answer has no opinion, and NCCL hears success.
template <class Body>
abi::Result guarded(const Body& body) noexcept {
  try {
    body();
  } catch (...) {
    // NCCL goes on as if the plugin were not there.
  }
  return abi::kSuccess;
}

}  // namespace crosstie::nccl
