// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/system.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "topology/rates.h"

namespace crosstie {
namespace {

double megabytes(Bandwidth rate) { return std::round(rate.bytes_per_second / 1e6); }

// NCCL looks at so many channels and NICs of a GPU at most.
constexpr size_t kMostNetsOfGpu = 64;

// GPUs before Ampere lose an eighth of what comes in for what they send; NVLink to POWER CPUs
// carries one way at a time.
double share_of_back(const Device& to, LinkType type, bool from_gpu) {
  if (to.kind == DeviceKind::gpu && !from_gpu && to.compute_capability &&
      to.compute_capability->value < 80)
    return 1.0 / 8;
  const bool power = to.kind == DeviceKind::numa && to.cpu && to.cpu->value.arch == "ppc64";
  return power && type == LinkType::nvlink ? 1 : 0;
}

// Peer-to-peer writes through Intel's root complex are cut to 64 bytes: a fifth more of the link.
double pci_factor(const Machine& machine, const Path& path, uint32_t from,
                  std::span<const Paths::Step> steps) {
  const auto devices = machine.devices();
  if (path.type != PathClass::phb || devices[from].kind != DeviceKind::gpu) return 1;
  const bool intel = std::ranges::any_of(steps, [&](const Paths::Step& step) {
    const auto& cpu = devices[step.to].cpu;
    return devices[step.to].kind == DeviceKind::numa && cpu && cpu->value.arch == "x86_64" &&
           cpu->value.vendor == "GenuineIntel";
  });
  return intel ? 6.0 / 5 : 1;
}

}  // namespace

NcclSystem::NcclSystem(const Machine& machine, bool several_nodes)
    : several_nodes_(several_nodes), hosts_(machine.host_count()) {
  const Paths paths(machine, Paths::View::nccl);
  find_ends(machine, paths);
  add_ways(machine, paths);
  describe_gpus(machine, paths);
  describe_nets(machine, paths);
  measure();
}

void NcclSystem::find_ends(const Machine& machine, const Paths& paths) {
  gpus_.resize(paths.gpus().size());
  nets_.resize(paths.ports().size());
  devices_.assign(paths.gpus().begin(), paths.gpus().end());
  devices_.insert(devices_.end(), paths.ports().begin(), paths.ports().end());
  for (uint32_t i = 0; i < machine.devices().size(); i++) {
    const Device& d = machine.devices()[i];
    if (d.kind == DeviceKind::nvswitch && nvswitch_ == kNoDevice) nvswitch_ = i;
    if (d.kind == DeviceKind::numa && d.cpu && cpu_.arch.empty()) cpu_ = d.cpu->value;
  }
  if (has_nvswitch()) devices_.push_back(nvswitch_);
  ends_ = devices_.size();
}

size_t NcclSystem::place(End end) const {
  if (end.kind == Kind::gpu) return end.index;
  return end.kind == Kind::net ? gpus_.size() + end.index : gpus_.size() + nets_.size();
}

void NcclSystem::add_ways(const Machine& machine, const Paths& paths) {
  ways_.resize(ends_ * ends_);
  const size_t first_net = gpus_.size();
  for (size_t a = 0; a < ends_; a++)
    for (size_t b = 0; b < ends_; b++)  // none is asked from NIC to NIC
      if (a < first_net || b < first_net)
        ways_[a * ends_ + b] = make_way(machine, paths, devices_[a], devices_[b]);
}

NcclSystem::Way NcclSystem::make_way(const Machine& machine, const Paths& paths, uint32_t from,
                                     uint32_t to) {
  const Path path = paths.between(from, to);
  const auto steps = paths.steps(from, to);
  const bool from_gpu = machine.devices()[from].kind == DeviceKind::gpu;
  const bool apart = from_gpu && machine.devices()[to].kind == DeviceKind::gpu &&
                     paths.network_is_faster(from, to);
  Way way{apart ? PathClass::net : path.type, megabytes(path.bandwidth), path.hops,
          pci_factor(machine, path, from, steps)};
  for (const Paths::Step& step : steps) way.flows.push_back(make_flow(machine, step, from_gpu));
  return way;
}

NcclSystem::Flow NcclSystem::make_flow(const Machine& machine, const Paths::Step& step,
                                       bool from_gpu) {
  const Bandwidth rate = step.rate.value;
  return {link(step.from, step.to, step.type, rate), link(step.to, step.from, step.type, rate),
          share_of_back(machine.devices()[step.to], step.type, from_gpu),
          step.type == LinkType::pci};
}

uint32_t NcclSystem::link(uint32_t from, uint32_t to, LinkType type, Bandwidth rate) {
  const auto [known, is_new] =
      links_.emplace(std::tuple(from, to, type), static_cast<uint32_t>(left_.size()));
  if (is_new) left_.push_back(megabytes(rate));
  return known->second;
}

void NcclSystem::describe_gpus(const Machine& machine, const Paths& paths) {
  const auto net_of = [&](uint32_t port) {
    return static_cast<uint32_t>(std::ranges::find(paths.ports(), port) - paths.ports().begin());
  };
  min_capability_ = UINT32_MAX;
  for (size_t g = 0; g < gpus_.size(); g++) {
    const uint32_t device = devices_[g];
    for (const uint32_t port : paths.ports_in_turn(device))
      gpus_[g].nets_in_turn.push_back(net_of(port));
    const auto& told = machine.devices()[device].compute_capability;
    const auto capability = static_cast<uint32_t>(told ? told->value : 0);
    min_capability_ = std::min(min_capability_, capability);
    max_capability_ = std::max(max_capability_, capability);
    double nvlink = 0;
    for (const Link& link : machine.links_as_nccl_takes_them()) {
      if ((link.a != device && link.b != device) || !link.bandwidth) continue;
      if (link.type == LinkType::nvlink) nvlink += megabytes(link.bandwidth->value);
      if (link.type == LinkType::pci) gpus_[g].pcie = megabytes(link.bandwidth->value);
    }
    in_total_ = std::max({in_total_, nvlink, gpus_[g].pcie});
  }
}

void NcclSystem::describe_nets(const Machine& machine, const Paths& paths) {
  for (uint32_t n = 0; n < nets_.size(); n++) {
    const uint32_t device = paths.ports()[n];
    const Device& port = machine.devices()[device];
    Net& net = nets_[n];
    net.rate = megabytes(port.line_rate ? port.line_rate->value : kAssumedLineRate);
    net.latency = port.latency ? port.latency->value : Seconds(0);
    const auto& card = machine.devices()[port.parent].sys_image_guid;
    net.port = {card ? card->value : port.identity.guid.value_or(n),
                port.identity.number.value_or(0)};
    const auto gpu_of = [&](uint32_t gpu) { return std::ranges::find(paths.gpus(), gpu); };
    const auto local = gpu_of(paths.local_gpu(device));
    if (local != paths.gpus().end()) net.local_gpu = static_cast<int>(local - paths.gpus().begin());
    for (const uint32_t gpu : paths.nearest(device, paths.gpus()))
      net.near.push_back(static_cast<uint32_t>(gpu_of(gpu) - paths.gpus().begin()));
  }
}

void NcclSystem::measure() {
  if (!several_nodes_ && gpus_.size() == 1) {
    most_ = in_total_ = megabytes(kLocal);
    return;
  }
  const Kind kind = several_nodes_ ? Kind::net : Kind::gpu;
  const size_t count = several_nodes_ ? nets_.size() : gpus_.size();
  for (uint32_t g = 0; g < gpus_.size(); g++)
    for (uint32_t i = 0; i < count; i++) {
      const Way& there = way({Kind::gpu, g}, {kind, i});
      if (there.hops > 0) most_ = std::max(most_, there.rate);
    }
}

bool NcclSystem::nvlink_is_split() const {
  std::vector<uint32_t> group(gpus_.size()), size(gpus_.size());
  std::iota(group.begin(), group.end(), 0);
  for (uint32_t g = 0; g < gpus_.size(); g++)
    for (uint32_t p = g + 1; p < gpus_.size(); p++)
      if (way({Kind::gpu, g}, {Kind::gpu, p}).type == PathClass::nvl) group[p] = group[g];
  for (const uint32_t g : group) size[g]++;
  return std::ranges::count_if(size, [](uint32_t members) { return members > 1; }) == 2;
}

PathClass NcclSystem::nearest(Kind kind) const {
  PathClass least = PathClass::sys;
  const auto count = static_cast<uint32_t>(kind == Kind::gpu ? gpus_.size() : nets_.size());
  for (uint32_t g = 0; g < gpus_.size(); g++)
    for (uint32_t i = 0; i < count; i++)
      if (kind != Kind::gpu || i != g) least = std::min(least, way({Kind::gpu, g}, {kind, i}).type);
  return least;
}

PathClass NcclSystem::farthest(Kind kind) const {
  PathClass most = PathClass::loc;
  const auto count = static_cast<uint32_t>(kind == Kind::gpu ? gpus_.size() : nets_.size());
  for (uint32_t g = 0; g < gpus_.size(); g++)
    for (uint32_t i = 0; i < count; i++)
      if (kind != Kind::gpu || i != g) most = std::max(most, way({Kind::gpu, g}, {kind, i}).type);
  return most;
}

// In a domain of several hosts the first NIC of each GPU comes before the second of any.
std::vector<uint32_t> NcclSystem::preferred(int gpu) const {
  std::vector<uint32_t> nets;
  const auto add = [&](uint32_t net) {
    if (std::ranges::find(nets, net) == nets.end()) nets.push_back(net);
  };
  const auto asked = gpu < 0 ? gpus() : gpus().subspan(static_cast<size_t>(gpu), 1);
  if (hosts_ == 1) {
    for (const Gpu& one : asked) std::ranges::for_each(one.nets_in_turn, add);
    return nets;
  }
  for (size_t turn = 0; turn < kMostNetsOfGpu; turn++)
    for (const Gpu& one : asked)
      if (turn < one.nets_in_turn.size()) add(one.nets_in_turn[turn]);
  return nets;
}

std::vector<uint32_t> NcclSystem::nets_within(PathClass type, int gpu) const {
  auto nets = preferred(gpu);
  const auto count = static_cast<uint32_t>(std::min(nets_.size(), kMostNetsOfGpu));
  for (auto t = PathClass::loc; t <= type; t = static_cast<PathClass>(static_cast<int>(t) + 1))
    for (uint32_t g = 0; g < gpus_.size(); g++) {
      if (gpu >= 0 && static_cast<uint32_t>(gpu) != g) continue;
      for (uint32_t n = 0; n < count; n++)
        if (way({Kind::gpu, g}, {Kind::net, n}).type == t &&
            std::ranges::find(nets, n) == nets.end())
          nets.push_back(n);
    }
  return nets;
}

bool NcclSystem::enough(const Flow& flow, double rate) const {
  const double back = rate * flow.share_of_back;
  return left_[flow.link] >= rate && (back == 0 || left_[flow.back] >= back);
}

// Of how many flows it could take.
size_t NcclSystem::take_first(const Way& way, size_t count, double rate) {
  for (size_t i = 0; i < count; i++) {
    const Flow& flow = way.flows[i];
    const double forth = flow.pci ? rate * way.pci_factor : rate;
    if (!enough(flow, forth)) return i;
    left_[flow.link] = std::round(left_[flow.link] - forth);
    left_[flow.back] = std::round(left_[flow.back] - forth * flow.share_of_back);
  }
  return count;
}

bool NcclSystem::take(End from, End to, double rate) {
  const Way& way = this->way(from, to);
  const size_t taken = take_first(way, way.flows.size(), rate);
  if (taken == way.flows.size()) return true;
  take_first(way, taken, -rate);
  return false;
}

void NcclSystem::take_net(uint32_t net, double rate) {
  for (Net& one : nets_)
    if (one.port == nets_[net].port) one.rate -= rate;
}

}  // namespace crosstie
