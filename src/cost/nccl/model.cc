// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/model.h"

#include <algorithm>
#include <bit>

#include "cost/nccl/costs.h"
#include "cost/nccl/pair.h"

namespace crosstie {
namespace {

uint64_t up_to_multiple(uint64_t number, uint64_t of) { return (number + of - 1) / of * of; }
uint64_t divide_up(uint64_t number, uint64_t by) { return (number + by - 1) / by; }

bool x86(NcclCpu cpu) { return cpu <= NcclCpu::x86_of_several_vendors; }

}  // namespace

NcclModel::NcclModel(const NcclRelease& release, const NcclJob& job)
    : release_(release), job_(job), nvls_channels_(nccl_nvls_channels(release, job)) {
  for (size_t c = 0; c < kNcclCollectives; c++)
    for (size_t a = 0; a < kNcclAlgorithms; a++)
      for (size_t p = 0; p < kNcclProtocols; p++)
        costs_[c][a][p] = nccl_cost(release_, job_, static_cast<Collective>(c),
                                    static_cast<Algorithm>(a), static_cast<Protocol>(p));
}

const NcclModel::Cost& NcclModel::cost(Collective collective, Algorithm algorithm,
                                       Protocol protocol) const {
  return costs_[static_cast<size_t>(collective)][static_cast<size_t>(algorithm)]
               [static_cast<size_t>(protocol)];
}

// Trees do not stick to the model in the middle.
double NcclModel::correction(const NcclCall& call, Algorithm algorithm, Protocol protocol) const {
  const auto& rule = release_.tree_correction;
  if (call.collective != Collective::all_reduce || call.bytes < 64) return 1;
  const auto column = static_cast<size_t>(std::bit_width(call.bytes / 64) - 1);
  const bool tree = algorithm == Algorithm::tree && column < rule.tree_columns;
  const bool nvls_tree = algorithm == Algorithm::nvls_tree && column < rule.nvls_tree_columns &&
                         job_.min_compute_capability >= rule.nvls_tree_compute_capability &&
                         x86(job_.cpu);
  return tree || nvls_tree ? rule.factor[static_cast<size_t>(protocol)][column] : 1;
}

bool NcclModel::on_plateau(const NcclCall& call, Algorithm algorithm, Protocol protocol) const {
  const uint64_t parts = uint64_t{job_.channels} * job_.ranks;
  return algorithm == Algorithm::ring && protocol == Protocol::simple && job_.nodes > 1 &&
         call.collective == Collective::all_reduce && parts > 0 &&
         call.bytes / parts >= release_.ring_plateau.bytes;
}

std::optional<Seconds> NcclModel::time(const NcclCall& call, Algorithm algorithm,
                                       Protocol protocol) const {
  const Cost& cost = this->cost(call.collective, algorithm, protocol);
  if (!cost.why_not.empty()) return std::nullopt;
  const bool volta = nccl_generation(job_.min_compute_capability) == NcclGeneration::volta;
  const double plateau = volta ? release_.ring_plateau.factor_volta : release_.ring_plateau.factor;
  // Others than rings share the latency of a batch.
  const double times = algorithm == Algorithm::ring
                           ? call.operations
                           : divide_up(call.operations, release_.channels.work_batch);
  const double rate = cost.bandwidth.bytes_per_second * correction(call, algorithm, protocol);
  return cost.latency * times * (on_plateau(call, algorithm, protocol) ? plateau : 1) +
         Seconds(static_cast<double>(call.bytes) / rate);
}

std::optional<NcclModel::Pick> NcclModel::pick(const NcclCall& call) const {
  std::optional<std::pair<Algorithm, Protocol>> best;
  float least = 0;  // as NCCL compares, so that what is equal to it is equal here
  for (size_t a = 0; a < kNcclAlgorithms; a++)
    for (size_t p = 0; p < kNcclProtocols; p++) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      const auto time = this->time(call, algorithm, protocol);
      if (!time || (best && static_cast<float>(time->count()) >= least)) continue;
      best = {algorithm, protocol};
      least = static_cast<float>(time->count());
    }
  if (!best) return std::nullopt;
  return launch(call, best->first, best->second);
}

std::optional<NcclModel::Pick> NcclModel::launch(const NcclCall& call, Algorithm algorithm,
                                                 Protocol protocol) const {
  const auto time = this->time(call, algorithm, protocol);
  if (!time) return std::nullopt;
  const Launch most = most_that_work(call, algorithm, protocol);
  return Pick{algorithm, protocol, *time, scheduled(call, algorithm, protocol, most.channels),
              most.threads};
}

uint32_t NcclModel::most_threads(Algorithm algorithm, Protocol protocol) const {
  const auto& threads = release_.threads;
  const NcclGraph& ring = job_.graphs.ring;
  if (algorithm != Algorithm::ring && algorithm != Algorithm::tree) return threads.most;
  if (protocol == Protocol::ll) return threads.ll;
  if (protocol == Protocol::ll128) return threads.ll128;
  const bool slow =
      ring.intra.bytes_per_second * ring.channels <= threads.slow_ring.bytes_per_second;
  return algorithm == Algorithm::ring && slow ? threads.simple_slow_ring : threads.simple;
}

uint64_t NcclModel::thread_bytes(Algorithm algorithm, Protocol protocol) const {
  const auto& threads = release_.threads;
  if (is_collnet(algorithm)) return threads.bytes_collnet;
  if (protocol == Protocol::simple) return threads.bytes_simple;
  if (protocol == Protocol::ll128) return threads.bytes_ll128;
  return uint64_t{threads.bytes_ll} * (algorithm == Algorithm::ring ? job_.ranks : 1);
}

// Fewer channels first, then fewer threads, until each thread has enough to do.
NcclModel::Launch NcclModel::most_that_work(const NcclCall& call, Algorithm algorithm,
                                            Protocol protocol) const {
  constexpr uint32_t kWarp = 32;
  if (is_nvls(algorithm)) {
    const bool beside_rings = algorithm == Algorithm::nvls && job_.nodes > 1;
    return {beside_rings ? std::min(nvls_channels_, job_.channels) : nvls_channels_,
            release_.threads.most};
  }
  if (algorithm == Algorithm::collnet_direct) return collnet_direct(call);
  Launch most{std::max(job_.channels, 1u), most_threads(algorithm, protocol)};
  const uint64_t bytes = thread_bytes(algorithm, protocol);
  const auto idle = [&] { return call.bytes < most.channels * most.threads * bytes; };
  while (idle() && most.channels > 1) most.channels--;
  while (idle() && most.threads % (4 * kWarp) == 0) most.threads /= 2;
  if (algorithm == Algorithm::ring && protocol == Protocol::simple) most.threads += kWarp;
  most.threads = std::max(most.threads, release_.threads.least);
  if (algorithm == Algorithm::tree || algorithm == Algorithm::pat)
    most.threads = release_.threads.most;
  return most;
}

// Down in stages, at each of which a thread may have half as much to do.
NcclModel::Launch NcclModel::collnet_direct(const NcclCall& call) const {
  Launch most{job_.channels, release_.threads.most};
  uint64_t bytes = release_.threads.bytes_collnet;
  bool idle = true;
  for (uint32_t stage = release_.channels.collnet_direct; stage >= 1 && idle; stage /= 2)
    while (
        (idle = call.bytes < most.channels * uint64_t{most.threads} * job_.collnet_heads * bytes) &&
        most.channels > stage) {
      if (most.channels == stage + stage / 2) bytes /= 2;
      most.channels--;
    }
  return most;
}

// What crosses the network's switches is not divided further.
bool NcclModel::reduces_in_network(Algorithm algorithm) const {
  return is_collnet(algorithm) || (algorithm == Algorithm::nvls && job_.nodes > 1);
}

// How NCCL spreads a collective that is alone in its group: in cells of at least so much traffic,
// of which that of LL counts four times.
uint32_t NcclModel::scheduled(const NcclCall& call, Algorithm algorithm, Protocol protocol,
                              uint32_t channels) const {
  if (reduces_in_network(algorithm) || channels == 0) return channels;
  const bool gathers = has_shares(call.collective);
  const uint64_t least = release_.channels.least_traffic;
  const uint64_t times = call.collective == Collective::all_reduce ? 2 : gathers ? job_.ranks : 1;
  const uint64_t weight = times * (protocol == Protocol::ll ? 4 : 1);
  const uint64_t bytes = gathers ? call.bytes / job_.ranks : call.bytes;
  const uint64_t per_channel = std::max(least, bytes * weight / channels);
  const uint64_t cell = up_to_multiple(divide_up(least, weight), 16);
  const uint64_t cells = divide_up(bytes, cell);
  const uint64_t cells_of_channel =
      std::max<uint64_t>(1, std::min(cells, divide_up(per_channel, cell * weight)));
  const uint64_t limit = is_nvls(algorithm) ? nvls_channels_ : std::max(job_.channels, 1u);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(divide_up(cells, cells_of_channel), 1, std::max<uint64_t>(limit, 1)));
}

}  // namespace crosstie
