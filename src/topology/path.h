// SPDX-License-Identifier: Apache-2.0
// Paths between the devices of a Machine, as NCCL finds and classes them (2.28.9,
// src/graph/paths.cc), since that is what users compare with and what the tuner must foresee.
#pragma once
#include <vector>

#include "topology/machine.h"
#include "topology/path_class.h"

namespace crosstie {

struct Path {
  PathClass type = PathClass::dis;
  Bandwidth bandwidth{};                  // of its narrowest link, one way
  uint32_t hops = 0;                      // links
  Provenance from = Provenance::assumed;  // how the bandwidth is known
  Known<Bandwidth> rate() const { return {bandwidth, from}; }
  bool operator==(const Path&) const = default;
};

// Whether a Machine is small enough for paths, whose memory grows with the square of its devices.
// Every real one is; of one from a file ask this before anything that finds paths.
Status paths_fit(const Machine& machine);

// Paths end at NUMA nodes, GPUs, NVSwitches (which count as one) and ports, and begin anywhere.
class Paths {
 public:
  enum class View {
    physical,  // the shortest way there is, of equally short ones the widest
    nccl,      // what NCCL takes with no variable set: no peer-to-peer nor GPUDirect RDMA beyond a
               // PCIe switch or where the driver refuses it, NICs by way of the GPU beside them
  };
  // The Machine must outlive the Paths.
  Paths(const Machine& machine, View view);

  Path between(uint32_t from, uint32_t to) const;
  // The devices on the way, both ends included; empty where there is none.
  std::vector<uint32_t> route(uint32_t from, uint32_t to) const;

  // A link as seen from its beginning; those of a GPU to all NVSwitches are one.
  struct Step {
    uint32_t from = 0, to = 0;
    LinkType type = LinkType::pci;
    Known<Bandwidth> rate{};
    bool operator==(const Step&) const = default;
  };
  // Of a way that there is each link, where two join the same devices the wider.
  std::vector<Step> steps(uint32_t from, uint32_t to) const;

  // GPUs, ports: those that are neither parts of others nor virtual.
  std::span<const uint32_t> gpus() const { return gpus_; }
  std::span<const uint32_t> ports() const { return ports_; }
  // Of these those with the widest paths from a device, and of these of the best class.
  std::vector<uint32_t> nearest(uint32_t from, std::span<const uint32_t> among) const;
  // The ports that a GPU's channels use in turn.
  std::vector<uint32_t> ports_in_turn(uint32_t gpu) const;
  // The first GPU that uses a port, if any.
  uint32_t local_gpu(uint32_t port) const;
  // NCCL's view: whether two GPUs of a host reach one another faster over the network, each through
  // PCIe switches alone. NCCL then takes them for GPUs of two nodes.
  bool network_is_faster(uint32_t gpu, uint32_t other) const;

 private:
  struct Cell {
    Path path;
    uint32_t next = kNoDevice;  // the device after `from`
    uint32_t via = kNoDevice;   // if set, the path is one to this device and one on from there
  };
  // A link as seen from its beginning.
  struct Edge {
    uint32_t to = 0;
    LinkType type = LinkType::pci;
    Known<Bandwidth> rate{};
  };

  Cell& cell(uint32_t from, uint32_t to) { return cells_[row_[to] * node_.size() + node_[from]]; }
  const Cell& cell(uint32_t from, uint32_t to) const {
    return cells_[row_[to] * node_.size() + node_[from]];
  }
  const Path& path(uint32_t from, uint32_t to) const { return cell(from, to).path; }
  DeviceKind kind(uint32_t node) const { return machine_.devices()[node].kind; }
  bool joins(const Link& link, DeviceKind a, DeviceKind b) const;

  void give_nodes();
  void fuse_switch_chips();
  void fuse_idle_switches();
  void give_rows();
  void add_edges(std::span<const Link> links);
  void search(uint32_t base);
  bool extend(uint32_t base, uint32_t node, const Edge& edge);
  PathClass class_of(const Cell& so_far, uint32_t node, const Edge& edge) const;
  std::vector<uint32_t> chain(uint32_t from, uint32_t to) const;

  void prefer_chip_to_chip();
  // NCCL's second thoughts, in its order.
  void keep_peers_close();
  void measure_networks();
  void reach_ports();
  bool relay(uint32_t gpu, uint32_t peer, uint32_t port);
  void go_by_way_of(uint32_t via, uint32_t from, uint32_t to);
  Path joined(uint32_t via, uint32_t from, uint32_t to) const;
  uint32_t host_between(uint32_t from, uint32_t to) const;
  bool may_use_gpu_direct(uint32_t gpu, uint32_t port) const;
  uint32_t local_cpu(uint32_t gpu) const;
  struct Share {
    std::vector<uint32_t> ports;
    size_t channels = 1;
  };
  Share share_of(uint32_t gpu) const;
  uint32_t port_for(uint32_t gpu, const Share& share, size_t channel) const;

  const Machine& machine_;
  std::vector<uint32_t> numas_, gpus_, ports_;
  std::vector<uint32_t> cpu_;       // by device, of a GPU: the NUMA node nearest to it
  std::vector<uint32_t> node_;      // by device: itself, or the first NVSwitch for all NVSwitches
  std::vector<Bandwidth> network_;  // by device, of a GPU in NCCL's view
  // By device: what fits through the idle switches fused with it.
  std::vector<Known<Bandwidth>> through_;
  std::vector<size_t> row_;               // by device that paths end at, into cells_; else kNoRow
  std::vector<std::vector<Edge>> edges_;  // by node
  std::vector<Cell> cells_;
};

}  // namespace crosstie
