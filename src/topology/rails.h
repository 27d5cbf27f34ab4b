// SPDX-License-Identifier: Apache-2.0
// Which port serves which GPU. Seen from the whole host, so that no two GPUs take one port while
// another is idle, as happens where each takes the nearest by itself.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "topology/path.h"

namespace crosstie {

// Whether RDMA is to be had of a port: verbs number ports from 1, network devices have no number.
inline bool has_rdma(const Device& port) { return port.identity.number.value_or(0) > 0; }

// Whether no subnet manager has set up an InfiniBand port, so that nothing gets through.
inline bool has_no_lid(const Device& port) {
  return port.link_layer && port.link_layer->value == "InfiniBand" && port.lid &&
         port.lid->value == 0;
}

// Whether the link of a port is known to be down.
inline bool has_no_carrier(const Device& port) { return port.carrier && !port.carrier->value; }

struct Rails {
  struct Gpu {
    uint32_t device = 0;
    std::vector<uint32_t> ports{};  // devices, the fastest first
  };
  struct Port {
    uint32_t device = 0;
    std::vector<uint32_t> gpus{};  // devices; whole GPUs only
    std::optional<uint32_t> rail{};
    std::string_view idle{};  // why it serves no GPU; empty where it does
    bool can_serve = true;    // has carrier and a LID; a PCI function, RDMA if others have
  };
  std::vector<Gpu> gpus;    // all, in the Machine's order; a partition has its GPU's ports
  std::vector<Port> ports;  // all, in the Machine's order
  bool best = true;         // false: of a host too large for that, the nearest were paired first
};

// A maximum matching within each host of the Machine: every GPU gets equally many ports (one where
// there are fewer ports than GPUs, and then ports are shared), the fewest pairs are of the farthest
// class of path, then of the next, and of such matchings one of the greatest bandwidth, evenly
// spread; of equals that in the order of devices. Beyond 256 GPUs with a port each, which no host
// has, pairs are made one by one instead, the nearest first. Ports without carrier, without RDMA
// where others have it, or so slow that no GPU gains by them, stay out. A port's rail is what is
// told of it; the other ports that serve have the rails that are free, in the order of the GPUs
// that they serve: the same on hosts of one kind.
Rails match_rails(const Machine& machine, const Paths& physical);
Rails match_rails(const Machine& machine);

}  // namespace crosstie
