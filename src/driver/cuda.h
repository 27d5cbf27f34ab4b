// SPDX-License-Identifier: Apache-2.0
// The CUDA driver (libcuda.so.1) as a table of functions; declared here so that no toolkit is
// needed to build. Its parts in use have been stable since CUDA 4.
#pragma once
#include "driver/library.h"

namespace crosstie {

enum CudaResult : int { kCudaSuccess = 0 };
enum CudaAttribute : int { kCudaCapabilityMajor = 75, kCudaCapabilityMinor = 76 };
using CudaDevice = int;  // counts the GPUs that CUDA_VISIBLE_DEVICES leaves
struct CudaUuid {
  unsigned char bytes[16];
};

struct Cuda {
  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*driver_version)(int* version) = nullptr;
  CudaResult (*device_count)(int* count) = nullptr;
  CudaResult (*device)(CudaDevice* device, int ordinal) = nullptr;
  CudaResult (*pci_bus_id)(char* text, int bytes, CudaDevice device) = nullptr;
  CudaResult (*uuid)(CudaUuid* uuid, CudaDevice device) = nullptr;
  CudaResult (*name)(char* text, int bytes, CudaDevice device) = nullptr;
  CudaResult (*attribute)(int* value, CudaAttribute attribute, CudaDevice device) = nullptr;
};

// Opens and initialises; fails where there is no GPU or no driver.
Result<Driver<Cuda>> open_cuda();

}  // namespace crosstie
