// SPDX-License-Identifier: Apache-2.0
// Hosts and what they are made of. Hosts of one kind share one Machine, so that a cluster costs
// a name and a pointer a host.
#pragma once
#include <memory>

#include "topology/machine.h"

namespace crosstie {

struct Host {
  std::string name;
  std::shared_ptr<const Machine> machine;
};

struct Topology {
  std::vector<Host> hosts;
};

inline Topology single_host(Machine machine) {
  const std::string name = machine.name();
  return {{Host{name, std::make_shared<const Machine>(std::move(machine))}}};
}

}  // namespace crosstie
