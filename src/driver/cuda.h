// SPDX-License-Identifier: Apache-2.0
// The CUDA driver (libcuda.so.1) as a table of functions; declared here so that no toolkit is
// needed to build.
#pragma once
#include "driver/library.h"

namespace crosstie {

enum CudaResult : int { kCudaSuccess = 0 };

struct Cuda {
  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*driver_version)(int* version) = nullptr;
};

// Opens and initialises; fails where there is no GPU or no driver.
Result<Driver<Cuda>> open_cuda();

}  // namespace crosstie
