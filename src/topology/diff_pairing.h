// SPDX-License-Identifier: Apache-2.0
// Which device of one machine is which of another.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace crosstie {

class Pairing {
 public:
  Pairing(const Machine& first, const Machine& second);

  // kNoDevice: the other machine has none like it.
  uint32_t in_second(uint32_t of_first) const { return sides_[0].partner[of_first]; }
  uint32_t in_first(uint32_t of_second) const { return sides_[1].partner[of_second]; }
  // Whether both are the same host: some UUID or GUID is in both.
  bool same_host() const { return same_host_; }

 private:
  struct Side {
    const Machine& machine;
    std::vector<uint32_t> partner;
    bool is_first;

    const Device& device(uint32_t i) const { return machine.devices()[i]; }
    // What a device that has its partner is called in both.
    uint32_t common_name(uint32_t i) const { return is_first ? i : partner[i]; }
  };
  using Key = std::function<std::string(const Side&, uint32_t)>;

  uint32_t pair_by(const Key& key);
  void pair_owners_of_ports();
  void pair_switches();
  void pair_by_place();
  void pair_by_order();

  static uint32_t paired_above(const Side& side, uint32_t device);
  static std::vector<std::string> endpoints_below(const Side& side);

  Side sides_[2];
  bool same_host_ = false;
};

}  // namespace crosstie
