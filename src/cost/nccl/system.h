// SPDX-License-Identifier: Apache-2.0
// A node as NCCL's search for graphs sees it: its GPUs and NICs, the paths between them, and what
// the channels found so far leave of each link. Private to this folder.
//
// Rates are in MB/s (10^6 bytes a second), in which NCCL's are whole numbers: it rounds what is
// left of a link to 0.001 GB/s.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "topology/path.h"

namespace crosstie {

class NcclSystem {
 public:
  enum class Kind : uint8_t { gpu, net, nvswitch };
  struct End {
    Kind kind = Kind::gpu;
    uint32_t index = 0;  // among those of its kind; of NVSwitches there is one
  };
  // A link in one direction, and how much the other direction loses with it.
  struct Flow {
    uint32_t link = 0, back = 0;
    double share_of_back = 0;
    bool pci = false;
  };
  struct Way {
    PathClass type = PathClass::dis;
    double rate = 0;
    uint32_t hops = 0;
    double pci_factor = 1;  // of what PCIe links on it lose
    std::vector<Flow> flows{};
  };
  struct Net {
    double rate = 0;  // that channels leave
    Seconds latency{};
    std::pair<uint64_t, uint32_t> port{};  // who has the same is the same port
    int local_gpu = -1;
    std::vector<uint32_t> near{};  // GPUs
  };
  struct Gpu {
    double pcie = -1;                      // to the CPU
    std::vector<uint32_t> nets_in_turn{};  // that its channels use
  };

  // Between several nodes channels begin and end at NICs.
  NcclSystem(const Machine& machine, bool several_nodes);

  bool several_nodes() const { return several_nodes_; }
  std::span<const Gpu> gpus() const { return gpus_; }
  std::span<const Net> nets() const { return nets_; }
  bool has_nvswitch() const { return nvswitch_ != kNoDevice; }
  uint32_t min_capability() const { return min_capability_; }
  uint32_t max_capability() const { return max_capability_; }
  const CpuModel& cpu() const { return cpu_; }      // of the first NUMA node
  double most() const { return most_; }             // that one channel can have
  double most_of_gpu() const { return in_total_; }  // over all links of a GPU
  bool nvlink_is_split() const;                     // it joins the GPUs to two groups
  // Of the paths between GPUs, or from GPUs to NICs.
  PathClass nearest(Kind kind) const;
  PathClass farthest(Kind kind) const;
  // The NICs to try, the best first: those that a GPU uses (-1: all GPUs), then others within that
  // class.
  std::vector<uint32_t> nets_within(PathClass type, int gpu) const;

  const Way& way(End from, End to) const { return ways_[place(from) * ends_ + place(to)]; }
  // Takes from all links on the way, or from none and returns false. Less than 0 gives back.
  bool take(End from, End to, double rate);
  void take_net(uint32_t net, double rate);

 private:
  void find_ends(const Machine& machine, const Paths& paths);
  void add_ways(const Machine& machine, const Paths& paths);
  Way make_way(const Machine& machine, const Paths& paths, uint32_t from, uint32_t to);
  Flow make_flow(const Machine& machine, const Paths::Step& step, bool from_gpu);
  uint32_t link(uint32_t from, uint32_t to, LinkType type, Bandwidth rate);
  void describe_gpus(const Machine& machine, const Paths& paths);
  void describe_nets(const Machine& machine, const Paths& paths);
  void measure();
  size_t place(End end) const;
  size_t take_first(const Way& way, size_t count, double rate);
  bool enough(const Flow& flow, double rate) const;
  std::vector<uint32_t> preferred(int gpu) const;

  bool several_nodes_;
  uint32_t hosts_ = 1, min_capability_ = 0, max_capability_ = 0;
  double most_ = 0, in_total_ = 0;
  CpuModel cpu_;
  std::vector<Gpu> gpus_;
  std::vector<Net> nets_;
  uint32_t nvswitch_ = kNoDevice;
  std::vector<uint32_t> devices_;  // of the ends: GPUs, NICs' ports, an NVSwitch
  size_t ends_ = 0;
  std::vector<Way> ways_;
  std::map<std::tuple<uint32_t, uint32_t, LinkType>, uint32_t> links_;
  std::vector<double> left_;  // of each link
};

}  // namespace crosstie
