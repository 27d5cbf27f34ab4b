// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/walk.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace crosstie {
namespace {

constexpr double kPerGigabyte = 1000;  // MB/s

// NCCL compares whole GB/s.
int whole(double megabytes) { return static_cast<int>(megabytes / kPerGigabyte); }

}  // namespace

NcclWalk::NcclWalk(NcclSystem& system, NcclChannels wanted, NcclChannels& best, int steps)
    : system_(system),
      now_(std::move(wanted)),
      best_(best),
      steps_(steps),
      gpus_(static_cast<uint32_t>(system.gpus().size())),
      used_(gpus_),
      nets_(gpus_ + 1) {
  now_.count = 0;
  now_.gpus.resize(size_t{now_.most} * gpus_);
  now_.enters.resize(now_.most);
  now_.leaves.resize(now_.most);
}

int NcclWalk::walk() {
  begin();
  return steps_;
}

const std::vector<uint32_t>& NcclWalk::nets_for(int gpu) {
  auto& nets = nets_[static_cast<size_t>(gpu + 1)];
  if (nets.empty()) nets = system_.nets_within(now_.type_inter, gpu);
  return nets;
}

// The next channel.
void NcclWalk::begin() {
  const bool ring = now_.pattern == NcclPattern::ring;
  const int last = static_cast<int>(gpus_) - 1;
  if (!system_.several_nodes()) return begin_at_gpus({-1, ring ? last : -1});
  begin_at_nets({ring ? last : now_.pattern == NcclPattern::split_tree ? 1 : 0, -1});
}

void NcclWalk::begin_at_gpus(Back back) {
  if (now_.pattern == NcclPattern::nvls)
    return try_gpu(std::nullopt, now_.count, 0, back, Order::free);
  if (now_.count == 0)
    try_gpu(std::nullopt, 0, 0, back, Order::as_numbered);
  else
    try_gpu(std::nullopt, gpu_of_last_channel(-1), 0, back, Order::as_last_channel);
  if (now_.same && now_.count > 0) return;
  for (uint32_t gpu = 0; gpu < gpus_; gpu++) try_gpu(std::nullopt, gpu, 0, back, Order::free);
}

void NcclWalk::begin_at_nets(Back back) {
  const auto& nets = nets_for(-1);
  const double rate = whole(now_.inter) * kPerGigabyte;
  // Where NICs are crossed, the second of two channels comes in where the first went out.
  const bool second =
      now_.pattern == NcclPattern::ring && now_.cross_nic == 2 && now_.count % 2 == 1;
  bool found_head = false;
  for (size_t i = 0; i < nets.size() && !found_head; i++) {
    const uint32_t net = nets[(now_.count + i) % nets.size()];
    if (system_.nets()[net].rate < rate || (second && net != now_.leaves[now_.count - 1])) continue;
    now_.enters[now_.count] = net;
    now_.latency_inter = system_.nets()[net].latency;
    system_.take_net(net, rate);
    if (has_heads())
      found_head = begin_head(net, nets.size(), back);
    else
      begin_at(net, back);
    system_.take_net(net, -rate);
  }
}

// A GPU is head of one channel at most.
bool NcclWalk::begin_head(uint32_t net, size_t nets, Back back) {
  const int gpu = system_.nets()[net].local_gpu;
  if (now_.count >= nets || gpu < 0) return false;
  const auto head = static_cast<uint32_t>(gpu);
  for (size_t channel = 0; channel < now_.count; channel++)
    if (now_.gpus[channel * gpus_] == head) return false;
  try_gpu(End{Kind::net, net}, head, 0, back, Order::free);
  return true;
}

void NcclWalk::begin_at(uint32_t net, Back back) {
  const End from{Kind::net, net};
  if (now_.count > 0 && now_.same)
    return try_gpu(from, gpu_of_last_channel(-1), 0, back, Order::as_last_channel);
  if (now_.count == 0 && !system_.has_nvswitch()) {
    // A first solution to compare with; it has steps of its own.
    const int steps = std::exchange(steps_, 1 << 10);
    try_gpu(from, 0, 0, back, Order::as_numbered);
    if (steps_ != kPerfect) steps_ = steps;
  }
  const int local = system_.nets()[net].local_gpu;
  if (local >= 0) try_gpu(from, static_cast<uint32_t>(local), 0, back, Order::free);
  for (const uint32_t gpu : system_.nets()[net].near)
    if (static_cast<int>(gpu) != local) try_gpu(from, gpu, 0, back, Order::free);
}

void NcclWalk::try_gpu(std::optional<End> from, uint32_t gpu, int step, Back back, Order order) {
  const End to{Kind::gpu, gpu};
  if (from && !take(*from, to, 1)) return;
  const uint64_t channel = uint64_t{1} << now_.count;
  used_[gpu] ^= channel;
  visit(gpu, step, back, order);
  used_[gpu] ^= channel;
  if (from) take(*from, to, -1);
}

void NcclWalk::visit(uint32_t gpu, int step, Back back, Order order) {
  if (steps_ <= 0) return;
  steps_--;
  const int last = static_cast<int>(gpus_) - 1;
  if (step > last) return finish_channel();
  now_.gpus[now_.count * gpus_ + static_cast<size_t>(step)] = gpu;
  if (step == back.to_net) return return_to_net(gpu, step, back, order);
  if (now_.pattern == NcclPattern::nvls) return multicast(gpu);
  if (now_.pattern == NcclPattern::collnet_direct) return scatter(gpu);
  if (step == last && step == back.to_first) return return_to_first(gpu, step, back, order);
  if (step == last) return visit(gpu, step + 1, {}, order);
  for (const uint32_t next : next_gpus(gpu, step, back, order))
    try_gpu(End{Kind::gpu, gpu}, next, step + 1, back, order);
}

void NcclWalk::finish_channel() {
  now_.count++;
  if (is_better()) {
    best_ = now_;
    if (now_.count == now_.most) steps_ = kPerfect;
  }
  if (now_.count < now_.most) begin();
  now_.count--;
}

bool NcclWalk::is_better() const {
  if (now_.count < now_.least) return false;
  if (now_.pattern == NcclPattern::nvls)
    return (now_.count > best_.count && now_.count <= gpus_) ||
           now_.count * now_.inter > best_.count * best_.inter;
  const double rate = now_.count * now_.intra, best = best_.count * best_.intra;
  if (rate != best) return rate > best;
  return now_.pattern == best_.pattern && now_.cross_nic == best_.cross_nic &&
         now_.hops < best_.hops;
}

bool NcclWalk::may_leave_by(uint32_t net, int step) const {
  const uint32_t in = now_.enters[now_.count];
  if (now_.pattern == NcclPattern::tree && net != in) return false;
  if (now_.pattern == NcclPattern::ring && now_.cross_nic == 2) {
    if (now_.count % 2 == 1 && net != now_.enters[now_.count - 1]) return false;
  } else if (now_.cross_nic == 0 && system_.nets()[net].port != system_.nets()[in].port) {
    return false;
  }
  return now_.pattern != NcclPattern::balanced_tree || step == 0 || net == now_.leaves[now_.count];
}

// A balanced tree goes back from its first two GPUs, by half of the rate each.
void NcclWalk::return_to_net(uint32_t gpu, int step, Back back, Order order) {
  if (!system_.several_nodes()) return;
  const bool balanced = now_.pattern == NcclPattern::balanced_tree;
  const double times = balanced ? 0.5 : 1;
  for (const uint32_t net : nets_for(static_cast<int>(gpu))) {
    if (!may_leave_by(net, step)) continue;
    const double whole_rate = std::exchange(now_.inter, now_.inter * times);
    const bool taken = take({Kind::gpu, gpu}, {Kind::net, net}, 1);
    now_.inter = whole_rate;
    if (!taken) continue;
    now_.leaves[now_.count] = net;
    visit(gpu, step, {balanced && step == 0 ? 1 : -1, back.to_first}, order);
    now_.inter *= times;
    take({Kind::gpu, gpu}, {Kind::net, net}, -1);
    now_.inter = whole_rate;
  }
}

void NcclWalk::return_to_first(uint32_t gpu, int step, Back back, Order order) {
  const uint32_t first = now_.gpus[now_.count * gpus_];
  if (!take({Kind::gpu, gpu}, {Kind::gpu, first}, 1)) return;
  visit(first, step + 1, {back.to_net, -1}, order);
  take({Kind::gpu, gpu}, {Kind::gpu, first}, -1);
}

// From a hub to the first `count` GPUs or back: of how many there is enough. The head of NVLS takes
// twice.
uint32_t NcclWalk::take_fan(uint32_t count, Kind hub, uint32_t head, bool out, double times) {
  const End centre{hub, hub == Kind::gpu ? head : 0};
  for (uint32_t gpu = 0; gpu < count; gpu++) {
    const End one{Kind::gpu, gpu};
    const double own = hub == Kind::nvswitch && gpu == head ? 2 * times : times;
    if (!take(out ? centre : one, out ? one : centre, own)) return gpu;
  }
  return count;
}

void NcclWalk::multicast(uint32_t head) {
  const uint32_t down = take_fan(gpus_, Kind::nvswitch, head, true, 1);
  if (down == gpus_) {
    const uint32_t up = take_fan(gpus_, Kind::nvswitch, head, false, 1);
    if (up == gpus_) visit(head, static_cast<int>(gpus_), {}, Order::free);
    take_fan(up, Kind::nvswitch, head, false, -1);
  }
  take_fan(down, Kind::nvswitch, head, true, -1);
}

void NcclWalk::scatter(uint32_t head) {
  const double share = 1.0 / (gpus_ - 1);
  const uint32_t forth = take_fan(gpus_, Kind::gpu, head, true, share);
  if (forth == gpus_) {
    const uint32_t back = take_fan(gpus_, Kind::gpu, head, false, share);
    if (back == gpus_) visit(head, static_cast<int>(gpus_), {}, Order::free);
    take_fan(back, Kind::gpu, head, false, -share);
  }
  take_fan(forth, Kind::gpu, head, true, -share);
}

// `times` of the rate; less than 0 gives back. Classes count for whole channels alone.
bool NcclWalk::take(End from, End to, double times) {
  const bool intra = from.kind != Kind::net && to.kind != Kind::net;
  const NcclSystem::Way& way = system_.way(from, to);
  const PathClass limit = intra ? now_.type_intra : now_.type_inter;
  const bool tree = now_.pattern == NcclPattern::balanced_tree ||
                    now_.pattern == NcclPattern::split_tree || now_.pattern == NcclPattern::tree;
  if (way.type == PathClass::dis) return false;
  if (times == 1 && (way.type > limit || (tree && system_.way(to, from).type > limit)))
    return false;
  if (!system_.take(from, to, (intra ? now_.intra : now_.inter) * times)) return false;
  now_.hops = static_cast<int>(now_.hops + times * way.hops);
  return true;
}

uint32_t NcclWalk::gpu_of_last_channel(int step) const {
  return now_.gpus[(now_.count - 1) * gpus_ + static_cast<size_t>(step + 1)];
}

std::vector<uint32_t> NcclWalk::next_gpus(uint32_t gpu, int step, Back back, Order order) const {
  if (order == Order::as_numbered) return {static_cast<uint32_t>(step + 1)};
  if (order == Order::as_last_channel) return {gpu_of_last_channel(step)};
  if (system_.has_nvswitch()) return neighbours(gpu);
  return all_others(gpu, back.to_net == -1 ? 0 : back.to_net == step + 1 ? 1 : -1);
}

bool NcclWalk::is_next(uint32_t gpu, uint32_t to) const {
  return to != gpu && system_.way({Kind::gpu, gpu}, {Kind::gpu, to}).hops > 0 &&
         (used_[to] >> now_.count & 1) == 0;
}

// The most promising first: before a NIC those near it (towards_net 1), else (-1) last where
// nothing else tells GPUs apart.
std::vector<uint32_t> NcclWalk::all_others(uint32_t gpu, int towards_net) const {
  using Score = std::tuple<int, int, uint32_t, int, uint32_t, uint32_t>;
  std::vector<std::pair<Score, uint32_t>> scores;
  for (uint32_t i = 1; i < gpus_; i++) {
    const uint32_t to = (gpu + i) % gpus_;
    if (!is_next(gpu, to)) continue;
    const auto& way = system_.way({Kind::gpu, gpu}, {Kind::gpu, to});
    Score score{0, 0, 0, -whole(way.rate), way.hops, i};
    if (towards_net != 0) {
      const auto& from_net = system_.way({Kind::net, now_.enters[now_.count]}, {Kind::gpu, to});
      std::get<0>(score) = -whole(from_net.rate);
      std::get<1>(score) = -whole(system_.gpus()[to].pcie);
      std::get<2>(score) = from_net.hops;
    }
    scores.emplace_back(score, to);
  }
  std::ranges::sort(scores);
  const auto within = [](const auto& one) {
    return std::pair(std::get<3>(one.first), std::get<4>(one.first));
  };
  const bool alike = std::ranges::all_of(
      scores, [&](const auto& one) { return within(one) == within(scores.front()); });
  if (towards_net == -1 && alike) std::ranges::reverse(scores);
  std::vector<uint32_t> next;
  for (const auto& [score, to] : scores) next.push_back(to);
  return next;
}

// NVSwitches prefer few peers: of all only the GPUs before and after.
std::vector<uint32_t> NcclWalk::neighbours(uint32_t gpu) const {
  const uint32_t before = (gpu + gpus_ - 1) % gpus_, after = (gpu + 1) % gpus_;
  std::vector<uint32_t> wanted;
  switch (now_.pattern) {
    case NcclPattern::ring:  // the last is tried first
      wanted = {before, after};
      break;
    case NcclPattern::split_tree:
    case NcclPattern::balanced_tree:
      wanted = {after, before};
      break;
    default:
      wanted = {after};
  }
  if (before == after) wanted.resize(1);
  std::erase_if(wanted, [&](uint32_t to) { return !is_next(gpu, to); });
  return wanted;
}

}  // namespace crosstie
