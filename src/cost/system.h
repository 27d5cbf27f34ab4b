// SPDX-License-Identifier: Apache-2.0
// A job on hosts of one kind, as both models take it.
#pragma once
#include <memory>

#include "cost/model.h"
#include "cost/nccl/search.h"

namespace crosstie {

struct ModelledJob {
  SystemFacts facts;  // of one of NCCL's nodes
  CostJob job;
  NcclJob nccl;
};

// On so many hosts, with so many GPUs of each in use (0: all). Hosts that would share an NVLink
// domain do. Fails where there is no GPU, or fewer than asked for.
Result<ModelledJob> model_job(const std::shared_ptr<const Machine>& kind, uint32_t hosts,
                              uint32_t gpus_per_host, const NcclRelease& release);

}  // namespace crosstie
