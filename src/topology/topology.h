// SPDX-License-Identifier: Apache-2.0
// Hosts and what they are made of. Hosts of one kind share one Machine, so that a cluster costs
// a name and a pointer a host.
#pragma once
#include <memory>

#include "topology/machine.h"

namespace crosstie {

// A switch that ports of hosts are cabled to.
struct Leaf {
  std::string name;
  std::optional<uint32_t> rail;  // if all its ports are of one rail
};

inline constexpr uint32_t kNoLeaf = UINT32_MAX;

// What tells a host's own unit of a device from that of other hosts of its kind. Where several
// such hosts share a Machine, it is kept here and not there.
struct Unit {
  uint32_t device = 0;  // index in the Machine
  std::string uuid{};
  std::optional<uint64_t> guid{};
  Property<uint64_t> node_guid{};
  Property<uint64_t> sys_image_guid{};
  Property<int> lid{};
  Property<std::vector<Gid>> gids{};
  Property<FabricClique> fabric{};
  std::map<std::string, std::string> attributes{};
  bool operator==(const Unit&) const = default;
};

struct Host {
  std::string name;
  std::shared_ptr<const Machine> machine;
  std::string domain{};            // the NVLink domain that it shares with others; empty: none
  std::vector<uint32_t> leaves{};  // of each port in the Machine's order, an index or kNoLeaf;
                                   // empty: none is known
  std::vector<Unit> units{};       // by device; empty: the Machine tells all
};

struct Topology {
  std::vector<Host> hosts;
  std::vector<Leaf> leaves{};
  std::vector<Gap> gaps{};  // of the cluster rather than of a Machine; `device` is a host or leaf
};

inline Topology single_host(Machine machine) {
  const std::string name = machine.name();
  return {{Host{name, std::make_shared<const Machine>(std::move(machine))}}};
}

}  // namespace crosstie
