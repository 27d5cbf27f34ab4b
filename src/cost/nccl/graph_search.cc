// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/graph_search.h"

#include <algorithm>

#include "cost/nccl/costs.h"

namespace crosstie {
namespace {

// Steps of a try, of a try for channels that are all alike, and of all tries (NCCL_SEARCH_TIMEOUT,
// NCCL_SEARCH_TIMEOUT_SAMECHANNELS, NCCL_SEARCH_GLOBAL_TIMEOUT).
constexpr int kStepsOfTry = 1 << 14;
constexpr int kStepsOfSame = 1 << 8;
constexpr int kStepsOfAll = 1 << 19;

// A graph that is far below is not worth that a lower rate is tried (ncclTopoCompute).
constexpr double kWorthTrying = 0.49;
// Channels with so much within a node are split in two, on newer GPUs only where there are few or
// they are faster still (ncclTopoDupChannels); MB/s.
constexpr double kSplitFrom = 25e3, kSplitFromNewer = 50e3;
constexpr uint32_t kFewChannels = 4;
// Of one that is made up where none was found.
constexpr double kMadeUp = 100;

constexpr uint32_t kMostNvlsHeads = 32, kMostDirectHeads = 8;  // NCCL_MAX_*_ARITY

PathClass farther(PathClass type) { return static_cast<PathClass>(static_cast<int>(type) + 1); }

bool amd(const CpuModel& cpu) { return cpu.arch == "x86_64" && cpu.vendor == "AuthenticAMD"; }

class Search {
 public:
  Search(const NcclRelease& release, NcclSystem& system, const NcclChannels& wanted);
  NcclChannels find();

 private:
  void limit_channels();
  void limit_classes(uint32_t farther_nics_below);
  void start_rate();
  void set_rate() { now_.intra = now_.inter = rates_[rate_]; }
  bool lower_rate_than(double most);
  int walk();
  bool is_enough(int left) const;
  bool relax(int left);
  bool try_channels_of_several_kinds();
  bool try_simpler_tree();
  bool try_farther_gpus();
  bool try_farther_nets();
  bool try_crossing_nets();
  bool try_lower_rate();
  void split_channels();
  void raise(int left);
  bool raise_rate();
  void make_up();
  bool nvls() const { return best_.pattern == NcclPattern::nvls; }
  bool ring() const { return best_.pattern == NcclPattern::ring; }

  NcclSystem& system_;
  NcclChannels best_, now_;
  std::vector<double> rates_;
  size_t rate_ = 0;
  bool may_cross_ = false, wants_same_ = true;
  PathClass least_intra_ = PathClass::loc, most_intra_ = PathClass::sys;
  PathClass least_inter_ = PathClass::pix, most_inter_ = PathClass::sys;
  int64_t steps_ = kStepsOfAll;
};

Search::Search(const NcclRelease& release, NcclSystem& system, const NcclChannels& wanted)
    : system_(system), best_(wanted) {
  const auto generation = static_cast<size_t>(nccl_generation(system.min_capability()));
  const auto& rates = system.several_nodes() ? release.search.across : release.search.within;
  for (const Bandwidth rate : rates[generation]) rates_.push_back(rate.bytes_per_second / 1e6);
  const bool crosses = ring() || best_.pattern == NcclPattern::balanced_tree ||
                       best_.pattern == NcclPattern::split_tree;
  may_cross_ = system.nets().size() > 1 && crosses;
  limit_classes(release.search.farther_nics_below);
  best_.type_intra = least_intra_;
  best_.type_inter = least_inter_;
  best_.same = wants_same_ = !nvls();
  limit_channels();
}

void Search::limit_classes(uint32_t farther_nics_below) {
  using Kind = NcclSystem::Kind;
  if (system_.gpus().size() > 1) {
    least_intra_ = system_.nearest(Kind::gpu);
    most_intra_ = system_.farthest(Kind::gpu);
  }
  if (!system_.several_nodes()) return;
  least_inter_ = system_.nearest(Kind::net);
  most_inter_ = system_.farthest(Kind::net);
  if (system_.min_capability() < farther_nics_below) most_inter_ = PathClass::sys;
  most_intra_ = most_inter_;
}

// As many heads as GPUs at most; on one node NVLS pulls evenly from all. Where NVLink joins two
// groups, rings are to be two, as trees are.
void Search::limit_channels() {
  const auto gpus = static_cast<uint32_t>(system_.gpus().size());
  if (nvls()) best_.most = std::min(kMostNvlsHeads, gpus);
  if (best_.pattern == NcclPattern::collnet_direct) best_.most = std::min(kMostDirectHeads, gpus);
  if (gpus == 1 && !ring()) best_.pattern = NcclPattern::tree;
  if (!system_.several_nodes() && nvls()) best_.least = best_.most;
  if (ring() && best_.most >= 2 && best_.least == 1 && system_.nvlink_is_split()) best_.least = 2;
}

// Such as a link can carry, and all channels together the links of a GPU.
void Search::start_rate() {
  const auto gpus = static_cast<double>(system_.gpus().size());
  // All but rings leave one GPU's links alone.
  const double in_total = system_.most_of_gpu() * (gpus > 1 && !ring() ? gpus / (gpus - 1) : 1);
  while (rate_ + 1 < rates_.size() &&
         (rates_[rate_] > system_.most() || rates_[rate_] * best_.least > in_total))
    rate_++;
  set_rate();
}

NcclChannels Search::find() {
  const bool can_multicast = system_.has_nvswitch() && system_.min_capability() >= 90;
  if (nvls() && !can_multicast) return best_;
  now_ = best_;
  start_rate();
  int left = walk();
  while (!is_enough(left) && relax(left)) left = walk();
  split_channels();
  raise(NcclWalk::kPerfect);
  if (best_.count == 0 && !best_.collnet && !nvls()) make_up();
  return best_;
}

int Search::walk() {
  const int steps = now_.same ? kStepsOfSame : kStepsOfTry;
  steps_ -= steps;
  return NcclWalk(system_, now_, best_, steps).walk();
}

bool Search::is_enough(int left) const {
  return left == NcclWalk::kPerfect || best_.count * best_.inter >= system_.most_of_gpu();
}

// One wish less. Each that is given up is wished for again when the next is. False where none is
// left, or no time.
bool Search::relax(int left) {
  if (try_channels_of_several_kinds()) return true;
  now_.same = wants_same_;
  steps_ += left;
  if (steps_ < 0 && best_.count > 0) return false;
  if (try_simpler_tree()) return true;
  now_.pattern = best_.pattern;
  if (try_farther_gpus()) return true;
  now_.type_intra = least_intra_;
  if (try_farther_nets()) return true;
  now_.type_inter = least_inter_;
  if (try_crossing_nets()) return true;
  now_.cross_nic = 0;
  return try_lower_rate();
}

// Not across AMD's sockets.
bool Search::try_channels_of_several_kinds() {
  if (!now_.same || (amd(system_.cpu()) && now_.type_intra == PathClass::sys)) return false;
  now_.same = false;
  return true;
}

bool Search::try_simpler_tree() {
  if (system_.min_capability() < 90 || now_.pattern != NcclPattern::balanced_tree) return false;
  now_.pattern = NcclPattern::tree;
  return true;
}

bool Search::try_farther_gpus() {
  const PathClass most = system_.several_nodes() ? now_.type_inter : most_intra_;
  if (now_.type_intra >= most || (best_.count > 0 && now_.type_intra >= best_.type_intra))
    return false;
  now_.type_intra = farther(now_.type_intra);
  return now_.type_intra < PathClass::dis;
}

bool Search::try_farther_nets() {
  if (!system_.several_nodes() || now_.type_inter >= most_inter_) return false;
  if (best_.count > 0 && now_.type_inter >= best_.type_inter && now_.type_inter >= PathClass::pxn)
    return false;
  now_.type_inter = farther(now_.type_inter);
  return now_.type_inter < PathClass::dis;
}

bool Search::try_crossing_nets() {
  const bool wants = ring() || best_.pattern == NcclPattern::balanced_tree;
  if (!may_cross_ || !wants || now_.cross_nic != 0) return false;
  now_.cross_nic = 2;
  return true;
}

bool Search::try_lower_rate() {
  if (rate_ + 1 >= rates_.size()) return false;
  if (best_.count > 0 && rates_[rate_ + 1] / best_.inter <= kWorthTrying) return false;
  rate_++;
  set_rate();
  return true;
}

void Search::split_channels() {
  if (best_.count == 0 || nvls() || best_.intra < kSplitFrom) return;
  if (system_.min_capability() > 80 && best_.intra < kSplitFromNewer && best_.count > kFewChannels)
    return;
  const size_t gpus = system_.gpus().size();
  const uint32_t count = std::min(best_.count * 2, best_.most);
  const auto repeat = [&](std::vector<uint32_t>& values, size_t of_channel) {
    values.resize(count * of_channel);
    std::copy_n(values.begin(), (count - best_.count) * of_channel,
                values.begin() + static_cast<ptrdiff_t>(best_.count * of_channel));
  };
  repeat(best_.gpus, gpus);
  repeat(best_.enters, 1);
  repeat(best_.leaves, 1);
  const double parts = (count + best_.count - 1) / best_.count;
  best_.intra /= parts;
  best_.inter /= parts;
  best_.count = count;
}

// From what was found: higher rates for as many channels.
void Search::raise(int left) {
  now_ = best_;
  rate_ = 0;
  while (rate_ + 1 < rates_.size() && rates_[rate_] > best_.inter) rate_++;
  set_rate();
  now_.least = best_.count;
  while (left != 0 && rate_ > 0 && raise_rate()) left = walk();
}

// Rings both rates; NVLS the network's; others that within a node.
bool Search::raise_rate() {
  if (ring()) {
    rate_--;
    set_rate();
    return true;
  }
  if (nvls() && now_.inter == best_.inter && now_.inter < now_.intra * 2) {
    now_.least = now_.most = best_.count;
    now_.inter = rates_[--rate_];
    return true;
  }
  if (now_.intra == best_.intra && now_.intra < now_.inter * 2) {
    now_.intra = rates_[--rate_];
    return true;
  }
  return false;
}

void Search::make_up() {
  best_.count = 1;
  best_.intra = best_.inter = kMadeUp;
  best_.type_intra = best_.type_inter = PathClass::sys;
}

}  // namespace

NcclChannels find_nccl_channels(const NcclRelease& release, NcclSystem& system,
                                const NcclChannels& wanted) {
  return Search(release, system, wanted).find();
}

}  // namespace crosstie
