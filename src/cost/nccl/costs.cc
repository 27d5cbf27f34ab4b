// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/costs.h"

#include <algorithm>
#include <bit>

#include "cost/nccl/pair.h"

namespace crosstie {
namespace {

Bandwidth operator*(Bandwidth rate, double factor) { return {rate.bytes_per_second * factor}; }

// Of one pair for one collective.
class Pair {
 public:
  Pair(const NcclRelease& release, const NcclJob& job, Collective collective, Algorithm algorithm,
       Protocol protocol)
      : release_(release),
        job_(job),
        collective_(collective),
        algorithm_(algorithm),
        protocol_(protocol),
        graph_(graph_of(algorithm)),
        generation_(static_cast<size_t>(nccl_generation(job.min_compute_capability))),
        scale_(std::min(job.nodes, 3u) - 1) {}

  std::string_view why_not() const;
  Bandwidth bandwidth() const { return bus() * bytes_of_the_user(); }
  Seconds latency() const;

 private:
  const NcclGraph& graph_of(Algorithm algorithm) const;
  bool gathers() const { return has_shares(collective_); }
  bool has_root() const {
    return collective_ == Collective::broadcast || collective_ == Collective::reduce;
  }
  bool nvls() const { return is_nvls(algorithm_); }
  bool collnet() const { return is_collnet(algorithm_); }
  size_t p() const { return static_cast<size_t>(protocol_); }
  // Bandwidths take the mean, latencies cut it off.
  double ranks_per_node() const { return static_cast<double>(job_.ranks) / job_.nodes; }
  uint32_t whole_ranks_per_node() const { return job_.ranks / job_.nodes; }
  uint32_t log2_nodes() const { return static_cast<uint32_t>(std::bit_width(job_.nodes)) - 1; }

  bool has_algorithm() const;
  std::string_view why_not_nvls() const;
  std::string_view why_not_collnet() const;
  std::string_view why_not_gather() const;
  std::string_view why_not_pat() const;
  std::string_view why_not_ll128() const;

  Bandwidth bus() const;
  Bandwidth channel() const;
  Bandwidth multicast() const;
  Bandwidth nvls_as_its_graph() const;
  Bandwidth ring(Bandwidth bus) const;
  Bandwidth tree(Bandwidth bus) const;
  Bandwidth collnet_direct(Bandwidth bus) const;
  Bandwidth most_of_ll() const;
  double bytes_of_the_user() const;

  double steps() const;
  Seconds ring_latency() const;
  Seconds rooted_ring_latency() const;
  const NcclRelease::Latencies& latencies_within() const;
  Seconds step(const NcclRelease::Latencies& latencies, Algorithm algorithm) const {
    return latencies[static_cast<size_t>(algorithm)][p()];
  }
  Seconds step_within() const { return step(latencies_within(), algorithm_); }
  Seconds step_across() const;
  Seconds network_post() const;

  const NcclRelease& release_;
  const NcclJob& job_;
  const Collective collective_;
  const Algorithm algorithm_;
  const Protocol protocol_;
  const NcclGraph& graph_;
  const size_t generation_, scale_;
};

const NcclGraph& Pair::graph_of(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::ring:
      return job_.graphs.ring;
    case Algorithm::collnet_direct:
      return job_.graphs.collnet_direct;
    case Algorithm::collnet_chain:
      return job_.graphs.collnet_chain;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return job_.graphs.nvls;
    default:  // PAT too
      return job_.graphs.tree;
  }
}

bool Pair::has_algorithm() const {
  switch (algorithm_) {
    case Algorithm::ring:
      return true;
    case Algorithm::nvls:
    case Algorithm::collnet_direct:
      return !has_root();
    case Algorithm::pat:
      return gathers();
    default:
      return collective_ == Collective::all_reduce;
  }
}

std::string_view Pair::why_not() const {
  if (job_.ranks < 2) return "a single rank only copies";
  if (!has_algorithm()) return "NCCL has no such algorithm for this collective";
  const bool any_protocol = algorithm_ == Algorithm::ring || algorithm_ == Algorithm::tree;
  if (!any_protocol && protocol_ != Protocol::simple) return "this algorithm knows Simple alone";
  std::string_view why;
  if (nvls()) why = why_not_nvls();
  if (collnet()) why = why_not_collnet();
  if (algorithm_ == Algorithm::pat) why = why_not_pat();
  if (protocol_ == Protocol::ll128) why = why_not_ll128();
  if (why.empty() && gathers() && job_.nodes > 1 &&
      (algorithm_ == Algorithm::nvls || algorithm_ == Algorithm::collnet_direct))
    why = why_not_gather();
  return why;
}

std::string_view Pair::why_not_nvls() const {
  if (!job_.nvls || job_.fewest_ranks_per_node < release_.nvls.least_ranks_per_node)
    return "NVLS needs several GPUs on NVSwitches, and a driver that multicasts";
  if (graph_.channels < (release_.nvls.multicast ? 2 : 1))
    return "NVLS found no two GPUs that are the head of a channel";
  if (algorithm_ == Algorithm::nvls_tree && job_.nodes == 1)
    return "NVLS_TREE is for more than one node";
  if (algorithm_ == Algorithm::nvls && job_.nodes > 1 && !job_.collnet)
    return "NVLS over several nodes needs a network that reduces (CollNet)";
  if (gathers() && job_.most_ranks_per_node > release_.nvls.most_ranks_per_node)
    return "NVLS gathers and scatters within 32 ranks of a node at most";
  return "";
}

std::string_view Pair::why_not_collnet() const {
  const bool direct = algorithm_ == Algorithm::collnet_direct;
  const uint32_t most = direct ? release_.collnet.most_ranks_per_node_direct
                               : release_.collnet.most_ranks_per_node_chain;
  if (!job_.collnet) return "the network does not reduce (CollNet), or is not asked to";
  if (most > 0 && job_.most_ranks_per_node > most) return "CollNet has a limit of ranks of a node";
  if (direct && !job_.nvswitch) return "CollNet Direct needs an NVSwitch";
  return "";
}

std::string_view Pair::why_not_gather() const {
  if (!job_.collnet_gathers) return "the network does not gather and scatter (CollNet)";
  if (job_.most_ranks_per_node > job_.collnet_heads)
    return "a node has more ranks than NICs of their own (CollNet)";
  return "";
}

std::string_view Pair::why_not_pat() const {
  if (job_.min_compute_capability < release_.pat.compute_capability) return "PAT needs newer GPUs";
  if (job_.nodes != job_.ranks) return "PAT is for one rank per node";
  return "";
}

std::string_view Pair::why_not_ll128() const {
  const auto& ll128 = release_.ll128;
  const uint32_t least = job_.min_compute_capability;
  const bool hopper = least >= 90;
  if (graph_.type_inter > (hopper ? ll128.across_hopper : ll128.across))
    return "LL128 is not sure of 128-byte stores on the way to the NIC";
  if (graph_.type_intra > ll128.within) return "LL128 needs NVLink between the GPUs of a node";
  if (least < ll128.compute_capability) return "LL128 needs newer GPUs";
  const uint32_t mixed = ll128.mixed_compute_capability;
  if (least != job_.max_compute_capability && (mixed == 0 || least < mixed))
    return "LL128 needs GPUs of one compute capability";
  return "";
}

Bandwidth Pair::channel() const {
  if (nvls()) return release_.nvls.multicast ? multicast() : nvls_as_its_graph();
  return job_.nodes <= 2 || collnet() ? graph_.intra : graph_.inter;
}

Bandwidth Pair::multicast() const {
  const bool tree = algorithm_ == Algorithm::nvls_tree;
  const double heads = graph_.channels, ppn = ranks_per_node();
  const double both_ways = collective_ == Collective::all_reduce ? 2 : (ppn - 1) / ppn;
  const Bandwidth intra =
      graph_.intra * (release_.nvls.efficiency[generation_] * (heads - 1) / heads * both_ways);
  const Bandwidth inter = graph_.inter * (job_.nodes <= 2 && tree ? 2 : 1);
  const Bandwidth least = std::min(intra, inter);
  return tree ? std::min(least, release_.bandwidth.nvls_tree[generation_][scale_]) : least;
}

Bandwidth Pair::nvls_as_its_graph() const {
  const double ppn = ranks_per_node();
  if (algorithm_ == Algorithm::nvls_tree)
    return std::min(graph_.intra, graph_.inter * (job_.nodes <= 2 ? 1 : 0.5));
  if (collective_ == Collective::all_reduce) return std::min(graph_.intra, graph_.inter);
  return std::min(graph_.intra * ((ppn - 1) / ppn), graph_.inter * release_.nvls.network_share);
}

Bandwidth Pair::bus() const {
  const Bandwidth bus = channel() * graph_.channels;
  switch (algorithm_) {
    case Algorithm::ring:
      return ring(bus);
    case Algorithm::tree:
      return tree(bus);
    case Algorithm::pat:
      return bus * release_.share.pat;
    case Algorithm::collnet_direct:
      return collnet_direct(bus);
    default:
      return bus;
  }
}

// On one node the GPUs decide, on several the CPUs.
Bandwidth Pair::most_of_ll() const {
  const bool amd = job_.cpu == NcclCpu::amd || job_.cpu == NcclCpu::x86_of_several_vendors ||
                   job_.cpu == NcclCpu::several;
  const auto by_cpu = static_cast<size_t>(amd ? NcclGeneration::ampere : NcclGeneration::volta);
  return release_.bandwidth.ll[job_.nodes == 1 ? generation_ : by_cpu][scale_];
}

Bandwidth Pair::ring(Bandwidth bus) const {
  if (protocol_ == Protocol::simple) return bus;
  if (protocol_ == Protocol::ll) return std::min(most_of_ll(), bus * release_.share.ring_ll);
  return std::min(bus * release_.share.ring_ll128,
                  release_.bandwidth.ring_ll128[generation_][scale_] * graph_.channels);
}

Bandwidth Pair::tree(Bandwidth bus) const {
  const double channels = graph_.channels;
  const auto& limits = release_.bandwidth;
  bus = std::min(bus * release_.share.tree, limits.tree[generation_][scale_] * channels);
  if (protocol_ == Protocol::ll) bus = std::min(bus * release_.share.tree_ll, most_of_ll());
  if (protocol_ == Protocol::ll128)
    bus = std::min(
        bus * (job_.nodes == 1 ? release_.share.tree_ll128_one_node : release_.share.tree_ll128),
        limits.tree_ll128[generation_][scale_] * channels);
  return graph_.pattern == NcclPattern::tree ? bus * release_.share.plain_tree : bus;
}

// AllReduce is slowed where GPUs share NICs: by half of their number at each beyond one.
Bandwidth Pair::collnet_direct(Bandwidth bus) const {
  if (gathers())
    return std::min(graph_.intra, graph_.inter * release_.share.collnet_direct_network) *
           ranks_per_node();
  const double ranks_per_nic = ranks_per_node() / graph_.channels;
  const double slowed = ranks_per_nic - (ranks_per_nic - 1) / 2;
  return bus *
         ((job_.min_compute_capability >= 90 ? release_.share.collnet_direct_hopper : 1) / slowed);
}

// Of each byte of the user's that crosses the links of a rank how much is the user's own.
double Pair::bytes_of_the_user() const {
  if (algorithm_ != Algorithm::ring && gathers()) return 1;
  if (nvls() && !release_.nvls.multicast) return release_.nvls.algorithm_share;
  if (algorithm_ == Algorithm::ring || nvls()) return job_.ranks / steps();
  return 0.5;
}

double Pair::steps() const {
  if (collective_ == Collective::all_reduce) return 2.0 * (job_.ranks - 1);
  return gathers() ? job_.ranks - 1 : job_.ranks;
}

Seconds Pair::latency() const {
  const Seconds base = step(release_.latency.base, algorithm_);
  const double others = whole_ranks_per_node() - 1, levels = log2_nodes();
  switch (algorithm_) {
    case Algorithm::ring:
      return base + (has_root() ? rooted_ring_latency() : ring_latency());
    case Algorithm::tree:
      return base + 2 * (others * step_within() + levels * step_across());
    case Algorithm::collnet_direct:
      return base +
             2 * (std::min(1.0, others) * step_within() + others * release_.collnet.serialization) +
             step_across();
    case Algorithm::collnet_chain:
      return base + 2 * others * step_within() + step_across();
    case Algorithm::nvls:
      return step_within() + (job_.nodes > 1 ? step_across() : Seconds(0));
    case Algorithm::nvls_tree:
      return base + step_within() + 2 * levels * step_across();
    default:
      return base + levels * (step_across() / release_.pat.network_divisor) +
             job_.ranks * release_.pat.rank;
  }
}

Seconds Pair::ring_latency() const {
  const double both_ways = collective_ == Collective::all_reduce ? 2 : 1;
  const double across = both_ways * (job_.nodes - 1);
  return (steps() - across) * std::max(step_within(), network_post()) + across * step_across();
}

// Where not all channels are alike, chunks wait at each rank; of Simple they are taken for a
// tree's.
Seconds Pair::rooted_ring_latency() const {
  const auto& latencies = job_.nodes == 1 ? latencies_within() : release_.latency.network;
  if (graph_.same_channels) return step(latencies, algorithm_);
  const bool as_tree = protocol_ == Protocol::simple;
  return steps() * step(latencies, as_tree ? Algorithm::tree : algorithm_);
}

const NcclRelease::Latencies& Pair::latencies_within() const {
  return graph_.type_intra == PathClass::nvl ? release_.latency.nvlink : release_.latency.pci;
}

// With one rank a node nothing hides the network's latency. Simple flushes what arrived.
Seconds Pair::step_across() const {
  const Algorithm as = job_.ranks == job_.nodes ? Algorithm::tree : algorithm_;
  const double crossings = protocol_ == Protocol::simple ? 2 : 1;
  return step(release_.latency.network, as) + crossings * graph_.latency_inter;
}

Seconds Pair::network_post() const {
  if (job_.nodes == 1) return Seconds(0);
  const auto& post = release_.network_post;
  return (job_.cpu == NcclCpu::amd ? post.amd : post.other) *
         (protocol_ == Protocol::simple ? post.simple_factor : 1);
}

bool fits(const NcclRelease::NvlsChannels& rule, const NcclJob& job) {
  return job.min_compute_capability >= rule.compute_capability && job.nodes >= rule.nodes &&
         (rule.most_nodes == 0 || job.nodes <= rule.most_nodes) &&
         (rule.most_ranks_per_node == 0 || job.fewest_ranks_per_node <= rule.most_ranks_per_node) &&
         job.slowest_port >= rule.slowest_port;
}

}  // namespace

uint32_t nccl_nvls_channels(const NcclRelease& release, const NcclJob& job) {
  const auto rule =
      std::ranges::find_if(release.nvls_channels, [&](const auto& one) { return fits(one, job); });
  return rule == release.nvls_channels.end() ? 0 : rule->channels;
}

NcclGeneration nccl_generation(uint32_t compute_capability) {
  if (compute_capability >= 100) return NcclGeneration::blackwell;
  if (compute_capability >= 90) return NcclGeneration::hopper;
  return compute_capability >= 80 ? NcclGeneration::ampere : NcclGeneration::volta;
}

NcclModel::Cost nccl_cost(const NcclRelease& release, const NcclJob& job, Collective collective,
                          Algorithm algorithm, Protocol protocol) {
  const Pair pair(release, job, collective, algorithm, protocol);
  const std::string_view why_not = pair.why_not();
  if (!why_not.empty()) return {.why_not = why_not};
  const Bandwidth bandwidth = pair.bandwidth();
  if (bandwidth <= Bandwidth{}) return {.why_not = "NCCL takes it for infinitely slow here"};
  return {pair.latency(), bandwidth, ""};
}

}  // namespace crosstie
