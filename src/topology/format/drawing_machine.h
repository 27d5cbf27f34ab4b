// SPDX-License-Identifier: Apache-2.0
// A kind of host in detail: CPUs as boxes around what they hold, from the left to the right; beyond
// the GPUs what joins them.
#pragma once
#include <optional>
#include <vector>

#include "topology/format/drawing_links.h"

namespace crosstie {

using PortRails = std::vector<std::optional<uint32_t>>;  // by device

class MachineDrawing {
 public:
  // All names of nodes begin with `prefix`. Writer, Machine and rails must outlive this.
  MachineDrawing(dot::Writer& out, const Machine& machine, const PortRails& rails,
                 std::string prefix);

  void draw(std::string_view title) const;

 private:
  const Device& device(uint32_t index) const { return nodes_.machine.devices()[index]; }
  void give_columns();
  bool is_end(uint32_t index) const;

  void draw_host(uint32_t host) const;
  void draw_package(uint32_t cpu) const;
  void draw_numa(uint32_t numa, bool boxed) const;
  void draw_within(uint32_t parent) const;
  void draw_device(uint32_t index) const;
  void draw_gpu(uint32_t gpu) const;
  void draw_nic(uint32_t nic) const;
  std::string port_row(uint32_t port) const;
  void draw_link(const Link& link) const;

  dot::Writer& out_;
  DrawnNodes nodes_;
  const PortRails& rails_;
  std::vector<std::vector<uint32_t>> within_;  // by device: what it contains
  std::vector<uint32_t> column_;               // by device
  uint32_t last_column_ = 0;                   // where all GPUs and NICs stand
};

}  // namespace crosstie
