// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/search.h"

#include <algorithm>

#include "cost/nccl/costs.h"
#include "cost/nccl/graph_search.h"

namespace crosstie {
namespace {

constexpr uint32_t kMostChannels = 64;  // MAXCHANNELS
constexpr uint32_t kMostRings = kMostChannels / 2;
constexpr uint32_t kFewChannels = 16;
constexpr Bandwidth kFastRing = gigabytes(45);

std::vector<uint32_t> whole_gpus(const Machine& machine) {
  auto gpus = machine.of_kind(DeviceKind::gpu);
  std::erase_if(gpus, [&](uint32_t i) { return machine.is_part(machine.devices()[i]); });
  return gpus;
}

// The Machine with these of its GPUs alone.
Machine with_gpus(const Machine& machine, std::span<const uint32_t> kept) {
  Machine::Parts parts = machine.parts();
  std::vector<uint32_t> place(parts.devices.size(), kNoDevice);
  std::vector<Device> devices;
  for (uint32_t i = 0; i < parts.devices.size(); i++) {
    Device& d = parts.devices[i];
    const bool whole_gpu = d.kind == DeviceKind::gpu && !machine.is_part(machine.devices()[i]);
    const bool of_dropped = d.parent != kNoDevice && place[d.parent] == kNoDevice;
    if (of_dropped || (whole_gpu && std::ranges::find(kept, i) == kept.end())) continue;
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

// GPUs that reach one another faster over the network are of several nodes to NCCL: a machine for
// each, with all NICs.
std::vector<Machine> nodes_of(const Machine& machine) {
  const Paths paths(machine, Paths::View::nccl);
  std::vector<std::vector<uint32_t>> groups;
  const auto joins = [&](uint32_t gpu, const std::vector<uint32_t>& group) {
    return std::ranges::any_of(group,
                               [&](uint32_t one) { return !paths.network_is_faster(gpu, one); });
  };
  for (const uint32_t gpu : paths.gpus()) {
    const auto group =
        std::ranges::find_if(groups, [&](const auto& one) { return joins(gpu, one); });
    if (group == groups.end())
      groups.push_back({gpu});
    else
      group->push_back(gpu);
  }
  std::vector<Machine> nodes;
  for (const auto& group : groups) nodes.push_back(with_gpus(machine, group));
  return nodes;
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
  if (system.gpus().size() >= release.nvls.least_ranks_per_node)
    graphs.nvls = find(NcclPattern::nvls, 1, kMostChannels);
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
uint32_t channels_of(const NcclRelease& release, const NcclJob& job) {
  uint32_t channels = std::min(kMostChannels, 2 * job.graphs.ring.channels);
  const NcclGraph& chain = job.graphs.collnet_chain;
  if (job.collnet && chain.intra > chain.inter && job.ranks > job.nodes)
    channels = std::min(kMostChannels, channels + channels / 2);
  const bool fast = job.min_compute_capability >= 90 && job.graphs.ring.intra > kFastRing;
  if (fast && job.nodes > 1 && channels < kFewChannels) channels *= 2;
  if (job.nvls && release.channels.as_many_as_nvls)
    channels = std::max(channels, nccl_nvls_channels(release, job));
  return channels;
}

Result<std::vector<Machine>> nodes_of(const NcclNodes& nodes) {
  const Machine& machine = *nodes.machine;
  const auto gpus = whole_gpus(machine);
  const size_t used = nodes.gpus == 0 ? gpus.size() : nodes.gpus;
  if (used == 0 || used > gpus.size())
    return fail(Code::invalid, "{}: has {} GPUs, and {} of each node are to be used",
                machine.name(), gpus.size(), used);
  if (const Status fits = paths_fit(machine); !fits) return pass(fits);
  return nodes_of(with_gpus(machine, std::span(gpus).first(used)));
}

class JobBuilder {
 public:
  JobBuilder(const NcclRelease& release, NcclNetwork network, bool several_nodes)
      : release_(release), network_(network), several_nodes_(several_nodes) {
    job_.ranks = job_.nodes = 0;
  }

  Status add(const Machine& node, uint32_t count) {
    NcclSystem system(node, several_nodes_);
    if (several_nodes_ && system.nets().empty())
      return fail(Code::invalid, "{}: has no NIC, and there are several nodes", node.name());
    merge(system, graphs_of(release_, system, network_.reduces), count);
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
    job_.channels = channels_of(release_, job_);
    return job_;
  }

 private:
  void merge(const NcclSystem& system, const NcclGraphs& graphs, uint32_t count) {
    const bool first = job_.nodes == 0;
    const auto gpus = static_cast<uint32_t>(system.gpus().size());
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

Result<NcclGraphs> find_nccl_graphs(const NcclRelease& release, const NcclNodes& nodes,
                                    bool several_nodes, NcclNetwork network) {
  const auto parts = nodes_of(nodes);
  if (!parts) return pass(parts);
  NcclSystem system(parts->front(), several_nodes || parts->size() > 1);
  return graphs_of(release, system, network.reduces);
}

Result<NcclJob> find_nccl_job(const NcclRelease& release, std::span<const NcclNodes> nodes,
                              NcclNetwork network) {
  std::vector<std::pair<Machine, uint32_t>> all;
  uint32_t count = 0;
  for (const NcclNodes& alike : nodes) {
    const auto parts = nodes_of(alike);
    if (!parts) return pass(parts);
    for (const Machine& part : *parts) all.emplace_back(part, alike.count);
    count += alike.count * static_cast<uint32_t>(parts->size());
  }
  if (count == 0) return fail(Code::invalid, "a job of no nodes");
  JobBuilder builder(release, network, count > 1);
  for (const auto& [machine, times] : all)
    if (const Status added = builder.add(machine, times); !added) return pass(added);
  return builder.finish();
}

}  // namespace crosstie
