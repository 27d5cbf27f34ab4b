// SPDX-License-Identifier: Apache-2.0
// What the checks of one machine share.
#pragma once
#include "base/finding.h"
#include "topology/rails.h"

namespace crosstie {

struct Suspect {
  explicit Suspect(const Machine& machine);

  const Device& device(uint32_t i) const { return machine.devices()[i]; }
  void find(Severity severity, std::string_view check, std::vector<uint32_t> of, std::string what,
            std::string evidence, std::string advice);

  const Machine& machine;
  Paths paths;
  Rails rails;
  std::vector<uint32_t> gpus;         // whole ones
  std::vector<uint32_t> nics, ports;  // NICs that are PCI functions, and their ports
  std::vector<uint32_t> usable;       // of those ports, that could serve a GPU
  std::vector<Finding> findings;
};

// What devices that are meant to be alike have in common; empty: nothing tells.
std::string kind_of(const Device& device);

// Of devices by themselves: check_devices.cc.
void check_pcie(Suspect& suspect);
void check_peers(Suspect& suspect);
void check_ports(Suspect& suspect);
void check_guids(Suspect& suspect);
void check_cpus(Suspect& suspect);
// Of what is between devices: check_links.cc.
void check_nvlinks(Suspect& suspect);
void check_distances(Suspect& suspect);
void check_refusals(Suspect& suspect);

}  // namespace crosstie
