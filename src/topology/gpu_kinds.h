// SPDX-License-Identifier: Apache-2.0
// What a GPU is by the ids of its PCI function, for where no driver was asked (data/gpus.toml).
#pragma once
#include <map>
#include <span>
#include <string>

#include "base/embedded.h"
#include "topology/device.h"

namespace crosstie {

class GpuKinds {
 public:
  struct Kind {
    int compute_capability = 0;
    std::string gcn{};  // of AMD's, as RCCL names it
  };

  // Those built in.
  GpuKinds();
  // nullptr: not listed.
  const Kind* find(const PciIds& ids) const;

 private:
  std::map<std::pair<uint16_t, uint16_t>, Kind> kinds_;  // by vendor and device
};

std::span<const EmbeddedToml> known_gpus();

}  // namespace crosstie
