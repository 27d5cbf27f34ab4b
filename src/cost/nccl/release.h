// SPDX-License-Identifier: Apache-2.0
// The constants of NCCL's decision model, which change with its releases; data/nccl has them with
// their sources, and tells what each means.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "base/result.h"
#include "base/units.h"
#include "base/words.h"
#include "topology/path_class.h"

namespace crosstie {

inline constexpr size_t kNcclAlgorithms = 7;  // of our words the first, in NCCL's order
inline constexpr size_t kNcclProtocols = 3;
inline constexpr size_t kNcclCollectives = 5;

// GPUs by compute capability: 7.0, 8.0, 9.0, 10.0 and more.
enum class NcclGeneration : uint8_t { volta, ampere, hopper, blackwell };
template <>
struct Names<NcclGeneration> {
  static constexpr std::array<std::string_view, 4> all = {"volta", "ampere", "hopper", "blackwell"};
};
inline constexpr size_t kNcclGenerations = 4;

struct NcclRelease {
  // By algorithm and protocol.
  using Latencies = std::array<std::array<Seconds, kNcclProtocols>, kNcclAlgorithms>;
  struct LatencyConstants {
    Latencies base{}, nvlink{}, pci{}, network{};
  } latency;

  // By generation; on 1 node, 2, more.
  using Limits = std::array<std::array<Bandwidth, 3>, kNcclGenerations>;
  struct BandwidthConstants {
    Limits ll{};                                             // in all
    Limits ring_ll128{}, tree_ll128{}, tree{}, nvls_tree{};  // of a channel
  } bandwidth;

  struct {
    double ring_ll = 0, ring_ll128 = 0, tree = 0, tree_ll = 0, tree_ll128 = 0,
           tree_ll128_one_node = 0, plain_tree = 0, pat = 0, collnet_direct_network = 0,
           collnet_direct_hopper = 0;
  } share;

  struct {
    bool multicast = false;                             // else its graph's rate is its rate
    std::array<double, kNcclGenerations> efficiency{};  // multicast
    double network_share = 0, algorithm_share = 0;      // otherwise
    uint32_t least_ranks_per_node = 0, most_ranks_per_node = 0;
  } nvls;
  struct NvlsChannels {
    uint32_t compute_capability = 0, nodes = 0, most_nodes = 0, most_ranks_per_node = 0;  // 0: any
    Bandwidth slowest_port{};
    uint32_t channels = 0;
  };
  std::vector<NvlsChannels> nvls_channels;  // the first that fits

  struct {
    uint32_t most_ranks_per_node_direct = 0, most_ranks_per_node_chain = 0;  // 0: any number
    Seconds serialization{};
  } collnet;
  struct {
    double network_divisor = 0;
    Seconds rank{};
    uint32_t compute_capability = 0;
  } pat;
  struct {
    Seconds amd{}, other{};
    double simple_factor = 0;
  } network_post;
  struct {
    uint64_t bytes = 0;
    double factor = 0, factor_volta = 0;
  } ring_plateau;
  struct {
    PathClass within{}, across{}, across_hopper{};
    uint32_t compute_capability = 0, mixed_compute_capability = 0;  // 0: never
  } ll128;
  struct {
    std::array<std::array<double, 24>, kNcclProtocols> factor{};  // at 64 bytes, 128 bytes, …
    uint32_t tree_columns = 0, nvls_tree_columns = 0;             // in use
    uint32_t nvls_tree_compute_capability = 0;
  } tree_correction;
  struct {
    uint32_t simple = 0, simple_slow_ring = 0, ll = 0, ll128 = 0, most = 0, least = 0;
    uint32_t bytes_ll = 0, bytes_ll128 = 0, bytes_simple = 0, bytes_collnet = 0;
    Bandwidth slow_ring{};
  } threads;
  struct {
    uint64_t least_traffic = 0;
    uint32_t collnet_direct = 0, work_batch = 0;
    bool as_many_as_nvls = false;  // rings and trees have at least
  } channels;

  // Rates of a channel that the search for graphs tries, the highest first.
  using Rates = std::array<std::vector<Bandwidth>, kNcclGenerations>;
  struct {
    Rates within{}, across{};         // one node, several
    uint32_t farther_nics_below = 0;  // compute capability
  } search;
};

// A release as NCCL numbers itself. Text as "2.28.9", "2.28" (its newest that we know) or
// "2.28.9-1".
struct NcclVersion {
  uint32_t major = 0, minor = 0, patch = 0;
  auto operator<=>(const NcclVersion&) const = default;
};
Result<NcclVersion> parse_nccl_version(std::string_view text);
std::string to_text(const NcclVersion& version);

// What is known of a release.
struct KnownNcclRelease {
  NcclRelease release;
  std::string from;  // "2.28.9": the release that last changed something before it, or it itself
  std::string note;  // one line where the release is older or newer than all that we know
};
Result<KnownNcclRelease> find_nccl_release(const NcclVersion& version);

// What NCCL tells a tuner of its model, from interface 5 on. Zeros where it does not.
struct NcclConstants {
  NcclRelease::LatencyConstants latency;
  NcclRelease::BandwidthConstants bandwidth;

  uint64_t digest() const;
};
// The newest release that we know all of whose constants are these: each differs in some.
std::optional<NcclRelease> release_of(const NcclConstants& shown);

// data/nccl, from the oldest release to the newest.
std::span<const EmbeddedToml> known_nccl_releases();
// Changes of a release are read into what was before it.
Status read_nccl_release(std::string_view toml, NcclRelease& release);

}  // namespace crosstie
