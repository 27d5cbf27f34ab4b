// SPDX-License-Identifier: Apache-2.0
// One try of NCCL's search for a graph: with a given pattern, rate, and limits of path classes, the
// best set of channels that it comes upon before its steps are used up. As the steps are few, their
// order decides what is found; it is NCCL's (src/graph/search.cc). Private to this folder.
#pragma once
#include <optional>

#include "cost/nccl/graph.h"
#include "cost/nccl/system.h"

namespace crosstie {

// A graph with what the search alone needs.
struct NcclChannels {
  NcclPattern pattern = NcclPattern::none;
  bool collnet = false;
  uint32_t least = 1, most = 1;  // channels wanted
  double intra = 0, inter = 0;   // MB/s
  PathClass type_intra = PathClass::loc, type_inter = PathClass::loc;
  bool same = false;
  int cross_nic = 0;
  Seconds latency_inter{};
  int hops = 0;
  uint32_t count = 0;
  std::vector<uint32_t> gpus{};              // of each channel, in its order
  std::vector<uint32_t> enters{}, leaves{};  // NICs of each channel
};

class NcclWalk {
 public:
  // `best` becomes better or stays.
  NcclWalk(NcclSystem& system, NcclChannels wanted, NcclChannels& best, int steps);
  // How many steps are left: 0: there was not the time to try all; kPerfect: nothing is better.
  int walk();
  static constexpr int kPerfect = -1;

 private:
  enum class Order { free, as_numbered, as_last_channel };
  // After which of a channel's GPUs it goes back to a NIC or to its first GPU; -1: never.
  struct Back {
    int to_net = -1, to_first = -1;
  };
  using End = NcclSystem::End;
  using Kind = NcclSystem::Kind;

  void begin();
  void begin_at_gpus(Back back);
  void begin_at_nets(Back back);
  void begin_at(uint32_t net, Back back);
  bool begin_head(uint32_t net, size_t nets, Back back);
  void try_gpu(std::optional<End> from, uint32_t gpu, int step, Back back, Order order);
  void visit(uint32_t gpu, int step, Back back, Order order);
  void return_to_net(uint32_t gpu, int step, Back back, Order order);
  void return_to_first(uint32_t gpu, int step, Back back, Order order);
  void multicast(uint32_t head);
  void scatter(uint32_t head);
  uint32_t take_fan(uint32_t count, Kind hub, uint32_t head, bool out, double times);
  void finish_channel();

  bool take(End from, End to, double times);
  bool is_better() const;
  bool may_leave_by(uint32_t net, int step) const;
  std::vector<uint32_t> next_gpus(uint32_t gpu, int step, Back back, Order order) const;
  bool is_next(uint32_t gpu, uint32_t to) const;
  std::vector<uint32_t> all_others(uint32_t gpu, int towards_net) const;
  std::vector<uint32_t> neighbours(uint32_t gpu) const;
  uint32_t gpu_of_last_channel(int step) const;
  const std::vector<uint32_t>& nets_for(int gpu);
  bool has_heads() const {
    return now_.pattern == NcclPattern::nvls || now_.pattern == NcclPattern::collnet_direct;
  }

  NcclSystem& system_;
  NcclChannels now_;
  NcclChannels& best_;
  int steps_;
  const uint32_t gpus_;
  std::vector<uint64_t> used_;               // by GPU, a bit a channel
  std::vector<std::vector<uint32_t>> nets_;  // by GPU + 1, once asked for
};

}  // namespace crosstie
