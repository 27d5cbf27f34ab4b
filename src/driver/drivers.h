// SPDX-License-Identifier: Apache-2.0
// All that is opened at run time, in one bundle that the doors make and hand down. Each is
// there, or has the reason why not.
#pragma once
#include <filesystem>

#include "driver/cuda.h"
#include "driver/nccl.h"
#include "driver/nvml.h"
#include "driver/verbs.h"

namespace crosstie {

struct Drivers {
  Result<Driver<Verbs>> verbs = fail(Code::missing, "not opened");
  Result<Driver<Nvml>> nvml = fail(Code::missing, "not opened");
  Result<Driver<Cuda>> cuda = fail(Code::missing, "not opened");
  Result<Driver<Nccl>> nccl = fail(Code::missing, "not opened");
  std::filesystem::path sysfs = "/sys";
};

Drivers open_drivers();

}  // namespace crosstie
