// SPDX-License-Identifier: Apache-2.0
#include "cost/model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace crosstie {
namespace {

using P = Parameter;

template <class Key, size_t Count>
P pick(const P (&by_key)[Count], Key key) {
  return by_key[static_cast<size_t>(key)];
}

Seconds over(double bytes, Bandwidth rate) { return Seconds(bytes / rate.bytes_per_second); }
Bandwidth operator*(double share, Bandwidth rate) { return {share * rate.bytes_per_second}; }

// Of a ring's buffer that passes through every link: 2(N-1)/N and (N-1)/N (Patarasuk and Yuan,
// 2009); and how often the ring goes round.
double rounds(Collective collective) { return collective == Collective::all_reduce ? 2 : 1; }
// log2, and in a straight line between powers of 2: the same bits on every CPU, which a library's
// log2 does not promise.
double tree_depth(double nodes) {
  const auto whole = std::bit_width(static_cast<uint32_t>(nodes)) - 1;
  return whole + nodes / static_cast<double>(1u << whole) - 1;
}
bool one_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce;
}

}  // namespace

// Bytes and what they go through; the slowest part counts.
struct CostModel::Part {
  std::string_view name, source;
  double bytes;
  Bandwidth rate;
};

CostModel::CostModel(const ParameterValues& parameters, const SystemFacts& facts,
                     const CostJob& job)
    : parameters_(parameters),
      facts_(facts),
      job_(job),
      ranks_(job.ranks),
      nodes_(job.nodes),
      gpus_(ranks_ / nodes_) {}

bool CostModel::can_run(Collective collective, Algorithm algorithm, Protocol protocol) const {
  const bool simple = protocol == Protocol::simple, one = job_.nodes == 1;
  const bool all_reduce = collective == Collective::all_reduce;
  if (algorithm == Algorithm::ring) return true;
  if (one_root(collective)) return false;
  if (algorithm == Algorithm::tree) return all_reduce;
  if (!simple) return false;
  if (algorithm == Algorithm::nvls) return facts_.multicast && one && job_.ranks > 1;
  if (algorithm == Algorithm::nvls_tree) return facts_.multicast && !one && all_reduce;
  if (algorithm == Algorithm::pat) return !all_reduce && job_.ranks == job_.nodes;
  return algorithm == Algorithm::hierarchical && all_reduce && !one && job_.ranks > job_.nodes;
}

Prediction CostModel::predict(Collective collective, Algorithm algorithm, Protocol protocol,
                              uint64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  if (algorithm == Algorithm::tree) return tree(protocol, size);
  if (algorithm == Algorithm::nvls) return multicast(collective, size);
  if (algorithm == Algorithm::nvls_tree) return multicast_tree(size);
  if (algorithm == Algorithm::pat) return pat(size);
  if (algorithm == Algorithm::hierarchical) return hierarchical(size);
  return one_root(collective) ? chain(protocol, size) : ring(collective, protocol, size);
}

// Rates.

Bandwidth CostModel::inside() const {
  static constexpr P kShare[] = {P::nvlink2_share,   P::nvlink3_share, P::nvlink4_share,
                                 P::nvlink5_share,   P::pcie_share,    P::xgmi_share,
                                 P::partitions_share};
  return at(pick(kShare, facts_.gpu_link)) * facts_.gpu_wire;
}

// A GPU alone cannot use its neighbours' NICs.
double CostModel::used_nics() const { return std::max(1.0, std::min<double>(facts_.nics, gpus_)); }

Bandwidth CostModel::across() const {
  static constexpr P kShare[] = {P::infiniband_share, P::infiniband_share, P::infiniband_share,
                                 P::efa_share,        P::slingshot_share,  P::sockets_share,
                                 P::tcpx_share};
  const bool detour = facts_.nics_behind_cpu && facts_.network != Network::sockets;
  const double share = at(pick(kShare, facts_.network)) * (detour ? at(P::behind_cpu_share) : 1);
  return share * used_nics() * facts_.nic_wire;
}

double CostModel::protocol_share(Protocol protocol) const {
  if (protocol == Protocol::simple) return 1;
  if (protocol == Protocol::ll) return at(P::ll_share);
  return at(facts_.amd_gpus() ? P::amd_ll128_share : P::ll128_share);
}

// The proxy looks at every line of an LL buffer before it sends it (NCCL, src/transport/net.cc),
// one thread for each GPU that has a NIC.
Bandwidth CostModel::proxies(Protocol protocol) const {
  if (protocol != Protocol::ll) return {HUGE_VAL};
  static constexpr P kRate[] = {P::ll_proxy_intel, P::ll_proxy_amd, P::ll_proxy_arm,
                                P::ll_proxy_intel};
  return used_nics() * gigabytes(at(pick(kRate, facts_.cpu)));
}

// NCCL gives a tree as many channels as there are NICs, and each is one block of threads.
Bandwidth CostModel::tree_channels() const {
  if (!facts_.has_nvlink()) return {HUGE_VAL};
  const uint32_t sm = facts_.compute_capability;
  const P rate = sm >= 100  ? P::tree_channel_sm100
                 : sm >= 90 ? P::tree_channel_sm90
                            : P::tree_channel_sm80;
  return std::max(1u, facts_.nics) * gigabytes(at(rate));
}

// Steps.

Seconds CostModel::step_inside(Protocol protocol) const {
  static constexpr P kStep[] = {P::ll_step, P::ll128_step, P::simple_step};
  const double link = facts_.has_nvlink() ? 1
                      : facts_.amd_gpus() ? at(P::xgmi_step)
                                          : at(P::pcie_step);
  return link * us(pick(kStep, protocol));
}

Seconds CostModel::network_extra() const {
  static constexpr P kExtra[] = {P::roce_step, P::efa_step, P::slingshot_step, P::sockets_step,
                                 P::tcpx_step};
  const Seconds stack = facts_.amd_gpus() ? us(P::amd_network_step) : Seconds(0);
  if (facts_.network <= Network::infiniband) return stack;
  return stack +
         us(kExtra[static_cast<size_t>(facts_.network) - static_cast<size_t>(Network::roce)]);
}

// message: bytes of it.
Seconds CostModel::step_across(Protocol protocol, double message) const {
  static constexpr P kStep[] = {P::ll_network_step, P::ll128_network_step, P::simple_network_step};
  const double on_wire = protocol == Protocol::ll ? 2 * message : message;
  const bool asks = facts_.network == Network::slingshot && on_wire > at(P::rendezvous_bytes);
  return us(pick(kStep, protocol)) + network_extra() + (asks ? us(P::rendezvous_step) : Seconds(0));
}

// Terms.

void CostModel::add_start(Protocol protocol, Prediction& to) const {
  to.add(Prediction::kLaunch, us(P::launch) + job_.gpus_per_process * us(P::launch_per_gpu),
         "launch, launch_per_gpu");
  if (protocol == Protocol::ll128) to.add("protocol", us(P::ll128_start), "ll128_start");
  if (protocol == Protocol::simple) to.add("protocol", us(P::simple_start), "simple_start");
}

Seconds CostModel::add_bytes(std::initializer_list<Part> parts, Prediction& to) const {
  const Part* slowest = nullptr;
  for (const Part& part : parts)
    if (!slowest || over(part.bytes, part.rate) > over(slowest->bytes, slowest->rate))
      slowest = &part;
  const Seconds time = over(slowest->bytes, slowest->rate);
  to.add(slowest->name, time, slowest->source);
  return time;
}

// Of so many chunks that what is lost at both ends is least: twice the root of steps x time, and
// less where bytes are too few to fill a pipeline.
void CostModel::add_pipeline(Parameter share, double bytes, Seconds steps, Seconds time,
                             Prediction& to) const {
  const Seconds paid = std::min(1.0, at(P::pipeline_bytes) / bytes) * time;
  const double shown = at(share) * (facts_.amd_gpus() ? at(P::amd_pipeline) : 1);
  const double full = steps.count() > 0 ? std::sqrt(steps / (steps + paid)) : 0;
  to.add("pipeline", 2 * shown * full * paid, row_of(share).name);
}

// A step of a ring inside a node.
Seconds CostModel::ring_step(Protocol protocol) const {
  const Seconds step = step_inside(protocol);
  return nodes_ > 1 ? std::max(step, us(P::proxy_step)) : step;
}

// through: bytes that pass through every link of a ring.
Seconds CostModel::add_ring_bytes(Protocol protocol, double through, Prediction& to) const {
  const double share = protocol_share(protocol), outside = nodes_ > 1 ? through : 0;
  return add_bytes({{"bytes inside", "share of the GPUs' links", through, share * inside()},
                    {"bytes across", "share of the network", outside, share * across()},
                    {"bytes through proxies", "ll_proxy_…", outside, proxies(protocol)}},
                   to);
}

// Algorithms.

Prediction CostModel::ring(Collective collective, Protocol protocol, double bytes) const {
  Prediction result;
  add_start(protocol, result);
  const double turns = rounds(collective), network_steps = turns * (nodes_ - 1);
  Seconds step = ring_step(protocol);
  if (facts_.amd_gpus() && protocol == Protocol::ll128 && bytes / ranks_ >= 1024)
    step = std::max(step, us(P::amd_ll128_step));
  const Seconds inside_steps = (turns * (ranks_ - 1) - network_steps) * step;
  const double message = bytes / ranks_ / std::max(1u, facts_.nics);
  const Seconds across_steps = network_steps * step_across(protocol, message);
  result.add("steps inside", inside_steps, "ll_step and its kin, proxy_step");
  result.add("steps across", across_steps, "ll_network_step and its kin");
  const double through = turns * (ranks_ - 1) / ranks_ * bytes;
  const Seconds time = add_ring_bytes(protocol, through, result);
  add_pipeline(P::ring_pipeline, bytes, inside_steps + across_steps, time, result);
  if (facts_.amd_gpus() && protocol == Protocol::simple)
    result.add("overlap", -at(P::amd_overlap) * std::min(inside_steps + across_steps, time),
               "amd_overlap");
  return result;
}

// From a root through all others, or to it. Measured times are of many in a row, which overlap.
Prediction CostModel::chain(Protocol protocol, double bytes) const {
  Prediction result;
  add_start(protocol, result);
  const bool one = nodes_ == 1;
  const Seconds inside_steps =
      std::max(0.0, at(P::chain_steps) - (one ? 0 : 1)) * ring_step(protocol);
  const double message = bytes / std::max(1u, facts_.nics);
  const Seconds across_steps = one ? Seconds(0) : step_across(protocol, message);
  result.add("steps inside", inside_steps, "chain_steps, ll_step and its kin");
  result.add("steps across", across_steps, "ll_network_step and its kin");
  const Seconds time = add_ring_bytes(protocol, bytes, result);
  add_pipeline(P::chain_pipeline, bytes, inside_steps + across_steps, time, result);
  return result;
}

// Two trees over the nodes, each for one half, a chain inside each node, up and down: every GPU
// sends the buffer twice, and of n nodes n-1 send it up and n-1 get it back.
Prediction CostModel::tree(Protocol protocol, double bytes) const {
  Prediction result;
  add_start(protocol, result);
  result.add("tree", us(P::tree_start), "tree_start");
  const bool one = nodes_ == 1;
  const bool amd = facts_.amd_gpus();
  const P in_ring_steps = amd ? P::amd_tree_step : P::tree_step;
  const Seconds inside_steps = 2 * (gpus_ - 1) * at(in_ring_steps) * step_inside(protocol);
  const P of_ring = amd ? P::amd_tree_share : P::tree_share;
  const double message = bytes / std::max(1u, facts_.nics);
  const Seconds across_steps =
      one ? Seconds(0) : 2 * tree_depth(nodes_) * step_across(protocol, message);
  result.add("steps inside", inside_steps, "tree_step, ll_step and its kin");
  result.add("steps across", across_steps, "ll_network_step and its kin");
  const double share = protocol_share(protocol), through = 2 * (nodes_ - 1) / nodes_ * bytes;
  // RCCL's Simple has all go up before anything comes down (its src/device/all_reduce.h,
  // runTreeUpDown): one direction of each link is idle.
  const double duplex = amd && protocol == Protocol::simple ? 0.5 : 1;
  const Seconds time = add_bytes(
      {{"bytes inside", "tree_share, share of the GPUs' links", 2 * bytes,
        duplex * share * at(of_ring) * inside()},
       {"bytes across", "tree_network_share, share of the network", through,
        share * at(P::tree_network_share) * across()},
       {"bytes through channels", "tree_channel_…", one ? 0 : 2 * bytes, share * tree_channels()},
       {"bytes through proxies", "ll_proxy_…", through, proxies(protocol)}},
      result);
  add_pipeline(P::tree_pipeline, bytes, inside_steps + across_steps, time, result);
  return result;
}

// The switch adds up what all GPUs hold and sends it to all: each GPU sends and receives the
// buffer once, and some more for the part that it is the head of.
Seconds CostModel::multicast_bytes(Collective collective, double bytes) const {
  const bool all_reduce = collective == Collective::all_reduce;
  const double echo = all_reduce ? 1 + at(P::multicast_echo) / gpus_ : 1;
  const P share =
      facts_.gpu_link == GpuLink::nvlink5 ? P::multicast_nvlink5_share : P::multicast_nvlink4_share;
  const double spread = 1 + at(P::multicast_spread) * std::max(0.0, tree_depth(gpus_) - 3);
  return over(spread * echo * bytes, at(share) * facts_.gpu_wire);
}

Prediction CostModel::multicast(Collective collective, double bytes) const {
  Prediction result;
  add_start(Protocol::ll, result);
  const Seconds start = us(P::multicast_start), time = multicast_bytes(collective, bytes);
  result.add("steps inside", start, "multicast_start");
  result.add("bytes inside", time, "multicast_nvlink…_share, multicast_echo");
  add_pipeline(P::multicast_pipeline, bytes, start, time, result);
  return result;
}

Prediction CostModel::multicast_tree(double bytes) const {
  Prediction result;
  add_start(Protocol::ll, result);
  const Seconds start = us(P::multicast_start);
  const Seconds across_steps =
      2 * tree_depth(nodes_) * (us(P::multicast_tree_step) + network_extra());
  result.add("steps inside", start, "multicast_start");
  result.add("steps across", across_steps, "multicast_tree_step");
  // From 4 nodes on NCCL's chunks are of 64 KiB at most (src/enqueue.cc), which fills InfiniBand
  // at 400 Gb/s, but neither EFA nor what is faster.
  const bool wants_more = facts_.nic_wire > gigabits(400) || facts_.network == Network::efa;
  const double wide = nodes_ >= 4 && wants_more ? at(P::multicast_wide_share) : 1;
  const Seconds inside_time = multicast_bytes(Collective::all_reduce, bytes);
  const Seconds across_time =
      over(2 * (nodes_ - 1) / nodes_ * bytes, at(P::multicast_tree_share) * wide * across());
  const Seconds time = std::max(inside_time, across_time);
  if (inside_time > across_time)
    result.add("bytes inside", time, "multicast_nvlink…_share, multicast_echo");
  else
    result.add("bytes across", time, "multicast_tree_share, multicast_wide_share");
  add_pipeline(P::multicast_tree_pipeline, bytes, start + across_steps, time, result);
  return result;
}

// Parallel aggregated trees: log2 N steps, each part crosses the network once.
Prediction CostModel::pat(double bytes) const {
  Prediction result;
  add_start(Protocol::simple, result);
  const double steps = std::ceil(tree_depth(ranks_));
  const Seconds across_steps = steps * step_across(Protocol::simple, bytes / 2);
  result.add("steps across", across_steps, "simple_network_step");
  const Seconds time =
      add_bytes({{"bytes across", "tree_network_share, share of the network",
                  (ranks_ - 1) / ranks_ * bytes, at(P::tree_network_share) * across()}},
                result);
  add_pipeline(P::tree_pipeline, bytes, across_steps, time, result);
  return result;
}

// Ours: ReduceScatter inside each node, a ring over the nodes by rail, AllGather inside; each GPU
// puts straight to its peers, and chunks keep both kinds of links busy (algorithms.md, section 3).
Prediction CostModel::hierarchical(double bytes) const {
  Prediction result;
  add_start(Protocol::simple, result);
  const Seconds inside_steps = 2 * step_inside(Protocol::simple);
  const double message = bytes / ranks_;
  const Seconds across_steps = 2 * (nodes_ - 1) * step_across(Protocol::simple, message);
  result.add("steps inside", inside_steps, "simple_step");
  result.add("steps across", across_steps, "simple_network_step");
  const Seconds time = add_bytes(
      {{"bytes inside", "share of the GPUs' links", 2 * (gpus_ - 1) / gpus_ * bytes, inside()},
       {"bytes across", "share of the network", 2 * (nodes_ - 1) / nodes_ * bytes, across()}},
      result);
  add_pipeline(P::ring_pipeline, bytes, inside_steps + across_steps, time, result);
  return result;
}

}  // namespace crosstie
