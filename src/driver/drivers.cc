// SPDX-License-Identifier: Apache-2.0
#include "driver/drivers.h"

namespace crosstie {

Drivers open_drivers() { return {open_verbs(), open_nvml(), open_cuda(), open_nccl(), "/sys"}; }

}  // namespace crosstie
