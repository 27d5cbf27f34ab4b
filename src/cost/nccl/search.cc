// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/search.h"

#include <algorithm>

#include "cost/nccl/graph_search.h"

namespace crosstie {
namespace {

constexpr uint32_t kMostChannels = 64;  // MAXCHANNELS
constexpr uint32_t kMostRings = kMostChannels / 2;
constexpr uint32_t kFewChannels = 16;
constexpr Bandwidth kFastRing = gigabytes(45);

// The Machine with its first GPUs alone.
Machine with_gpus(const Machine& machine, uint32_t count) {
  Machine::Parts parts = machine.parts();
  std::vector<uint32_t> place(parts.devices.size(), kNoDevice);
  std::vector<Device> devices;
  uint32_t gpus = 0;
  for (uint32_t i = 0; i < parts.devices.size(); i++) {
    Device& d = parts.devices[i];
    const bool within_dropped = d.parent != kNoDevice && place[d.parent] == kNoDevice;
    const bool is_gpu = d.kind == DeviceKind::gpu && !machine.is_part(machine.devices()[i]);
    if (within_dropped || (is_gpu && gpus++ >= count)) continue;
    place[i] = static_cast<uint32_t>(devices.size());
    if (d.parent != kNoDevice) d.parent = place[d.parent];
    devices.push_back(std::move(d));
  }
  const auto keep = [&](auto& pairs) {
    std::erase_if(pairs, [&](auto& pair) {
      pair.a = place[pair.a];
      pair.b = place[pair.b];
      return pair.a == kNoDevice || pair.b == kNoDevice;
    });
  };
  keep(parts.links);
  keep(parts.nccl_links);
  keep(parts.refusals);
  parts.devices = std::move(devices);
  return Machine(std::move(parts));
}

uint32_t whole_gpus(const Machine& machine) {
  return static_cast<uint32_t>(std::ranges::count_if(machine.devices(), [&](const Device& d) {
    return d.kind == DeviceKind::gpu && !machine.is_part(d);
  }));
}

NcclGraph reported(const NcclChannels& found) {
  const auto rate = [](double megabytes) { return Bandwidth{megabytes * 1e6}; };
  return {found.pattern,    found.count, rate(found.intra), rate(found.inter),  found.type_intra,
          found.type_inter, found.same,  found.cross_nic,   found.latency_inter};
}

NcclGraphs graphs_of(const NcclRelease& release, NcclSystem& system, bool collnet) {
  const auto find = [&](NcclPattern pattern, uint32_t least, uint32_t most, bool reduces = false) {
    NcclChannels wanted;
    wanted.pattern = pattern;
    wanted.collnet = reduces;
    wanted.least = least;
    wanted.most = most;
    return reported(find_nccl_channels(release, system, wanted));
  };
  NcclGraphs graphs;
  graphs.ring = find(NcclPattern::ring, 1, kMostRings);
  const uint32_t rings = graphs.ring.channels;
  graphs.tree = find(NcclPattern::balanced_tree, rings, rings);
  if (collnet) {
    graphs.collnet_chain = find(NcclPattern::tree, rings, rings, true);
    graphs.collnet_direct = find(NcclPattern::collnet_direct, 1, kMostChannels, true);
  }
  if (system.gpus().size() > 1) graphs.nvls = find(NcclPattern::nvls, 1, kMostChannels);
  return graphs;
}

// What all ranks can do.
void reduce(NcclGraph& graph, const NcclGraph& other) {
  graph.pattern = std::max(graph.pattern, other.pattern);
  graph.channels = std::min(graph.channels, other.channels);
  graph.same_channels = graph.same_channels && other.same_channels;
  graph.intra = std::min(graph.intra, other.intra);
  graph.inter = std::min(graph.inter, other.inter);
  graph.type_intra = std::max(graph.type_intra, other.type_intra);
  graph.type_inter = std::max(graph.type_inter, other.type_inter);
  graph.cross_nic = std::max(graph.cross_nic, other.cross_nic);
}

void reduce(NcclGraphs& graphs, const NcclGraphs& other) {
  reduce(graphs.ring, other.ring);
  reduce(graphs.tree, other.tree);
  reduce(graphs.collnet_chain, other.collnet_chain);
  reduce(graphs.nvls, other.nvls);
  reduce(graphs.collnet_direct, other.collnet_direct);
}

NcclCpu cpu_of(const CpuModel& model) {
  if (model.arch == "arm64" || model.arch == "aarch64") return NcclCpu::arm;
  if (model.arch == "ppc64" || model.arch == "ppc64le") return NcclCpu::power;
  if (model.vendor == "GenuineIntel") return NcclCpu::intel;
  return model.vendor == "AuthenticAMD" ? NcclCpu::amd : NcclCpu::other_x86;
}

NcclCpu both(NcclCpu a, NcclCpu b) {
  if (a == b) return a;
  const bool x86 = std::max(a, b) <= NcclCpu::x86_of_several_vendors;
  return x86 ? NcclCpu::x86_of_several_vendors : NcclCpu::several;
}

// Rings and trees are run twice; more where the network reduces, and where few channels are to feed
// a fast network (ncclTopoPostset).
uint32_t channels_of(const NcclJob& job) {
  uint32_t channels = std::min(kMostChannels, 2 * job.graphs.ring.channels);
  const NcclGraph& chain = job.graphs.collnet_chain;
  if (job.collnet && chain.intra > chain.inter && job.ranks > job.nodes)
    channels = std::min(kMostChannels, channels + channels / 2);
  const bool fast = job.min_compute_capability >= 90 && job.graphs.ring.intra > kFastRing;
  if (fast && job.nodes > 1 && channels < kFewChannels) channels *= 2;
  return channels;
}

class JobBuilder {
 public:
  JobBuilder(const NcclRelease& release, NcclNetwork network, bool several_nodes)
      : release_(release), network_(network), several_nodes_(several_nodes) {
    job_.ranks = job_.nodes = 0;
  }

  Status add(const NcclNodes& nodes) {
    const uint32_t there = whole_gpus(*nodes.machine);
    const uint32_t gpus = nodes.gpus == 0 ? there : nodes.gpus;
    if (gpus == 0 || gpus > there)
      return fail(Code::invalid, "{}: has {} GPUs, and {} of each node are to be used",
                  nodes.machine->name(), there, gpus);
    if (const Status fits = paths_fit(*nodes.machine); !fits) return fits;
    const Machine machine = with_gpus(*nodes.machine, gpus);
    NcclSystem system(machine, several_nodes_);
    if (several_nodes_ && system.nets().empty())
      return fail(Code::invalid, "{}: has no NIC, and there are several nodes", machine.name());
    merge(system, graphs_of(release_, system, network_.reduces), nodes.count, gpus);
    return {};
  }

  NcclJob finish() {
    job_.collnet = network_.reduces && job_.graphs.collnet_chain.channels > 0;
    job_.collnet_gathers = job_.collnet && network_.gathers;
    job_.collnet_heads = job_.graphs.collnet_direct.channels;
    job_.nvls = job_.graphs.nvls.channels > 0;
    NcclGraphs& graphs = job_.graphs;
    graphs.ring.channels = graphs.tree.channels =
        std::min(graphs.ring.channels, graphs.tree.channels);
    job_.channels = channels_of(job_);
    return job_;
  }

 private:
  void merge(const NcclSystem& system, const NcclGraphs& graphs, uint32_t count, uint32_t gpus) {
    const bool first = job_.nodes == 0;
    const NcclCpu cpu = cpu_of(system.cpu());
    job_.nodes += count;
    job_.ranks += count * gpus;
    job_.most_ranks_per_node = first ? gpus : std::max(job_.most_ranks_per_node, gpus);
    job_.fewest_ranks_per_node = first ? gpus : std::min(job_.fewest_ranks_per_node, gpus);
    job_.min_compute_capability =
        first ? system.min_capability()
              : std::min(job_.min_compute_capability, system.min_capability());
    job_.max_compute_capability = std::max(job_.max_compute_capability, system.max_capability());
    job_.cpu = first ? cpu : both(job_.cpu, cpu);
    job_.nvswitch = (first || job_.nvswitch) && system.has_nvswitch();
    for (const auto& net : system.nets()) {
      const Bandwidth rate{net.rate * 1e6};
      const bool none = job_.slowest_port == Bandwidth{};
      job_.slowest_port = none ? rate : std::min(job_.slowest_port, rate);
    }
    if (first)
      job_.graphs = graphs;
    else
      reduce(job_.graphs, graphs);
  }

  const NcclRelease& release_;
  NcclNetwork network_;
  bool several_nodes_;
  NcclJob job_;
};

}  // namespace

Result<NcclJob> find_nccl_job(const NcclRelease& release, std::span<const NcclNodes> nodes,
                              NcclNetwork network) {
  uint32_t count = 0;
  for (const NcclNodes& alike : nodes) count += alike.count;
  if (count == 0) return fail(Code::invalid, "a job of no nodes");
  JobBuilder builder(release, network, count > 1);
  for (const NcclNodes& alike : nodes)
    if (const Status added = builder.add(alike); !added) return pass(added);
  return builder.finish();
}

}  // namespace crosstie
