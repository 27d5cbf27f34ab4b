// SPDX-License-Identifier: Apache-2.0
// What a VM hides: hypervisors put each device on a root port of its own and tell neither switches,
// NUMA nodes nor link speeds. An overlay tells them.
#pragma once
#include "topology/machine.h"

namespace crosstie {

struct Overlay {
  struct Switch {
    std::optional<Bdf> bdf{};  // none: one that is free; the guest knows no switch by it anyway
    std::optional<uint32_t> numa{};
    Property<double> pcie_speed{};  // GT/s, of its link towards the CPU
    Property<int> pcie_lanes{};
    std::vector<Bdf> devices{};  // GPUs, NICs and switches right beneath it
  };
  struct Correction {
    Bdf bdf{};
    std::optional<uint32_t> numa{};
    Property<double> pcie_speed{};
    Property<int> pcie_lanes{};
    Property<Bandwidth> line_rate{};  // of the ports of a NIC
  };
  std::vector<Switch> switches{};
  std::vector<Correction> corrections{};
  Property<double> pcie_speed{};  // of devices of which neither guest nor correction tells it
  Property<int> pcie_lanes{};
  std::vector<uint32_t> links_to_switch{};  // NVLinks of each GPU that shows none
};

struct Overlaid {
  Machine machine;
  std::vector<Bdf> unmatched;  // which the overlay names and the machine does not have; gaps too
};

// The machine as the overlay has it: what that tells outweighs what the guest saw. Bridges of the
// guest that nothing is left beneath go, and so does a NUMA node of no number. Fails where the
// outcome would be no Machine.
Result<Overlaid> lay_over(const Machine& machine, const Overlay& overlay);

}  // namespace crosstie
