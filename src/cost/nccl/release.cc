// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl/release.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <set>

#include "base/digest.h"
#include "base/toml.h"

namespace crosstie {
namespace {

constexpr int64_t kMost = UINT32_MAX;

Seconds from_microseconds(double us) { return microseconds(us); }
double as_it_is(double number) { return number; }

class Reader : TomlValues {
 public:
  explicit Reader(NcclRelease& release) : release_(release) {}

  Status read(const toml::table& root) {
    read_latencies(root);
    read_bandwidths(root);
    read_algorithms(root);
    read_protocols(root);
    read_launch(root);
    read_search(table(root, "search"));
    expect_read(root);
    return status_;
  }

 private:
  const toml::table& table(const toml::table& in, std::string_view key) {
    const toml::node* const node = in.get(key);
    if (node == nullptr) return nothing_;
    if (node->is_table()) return *node->as_table();
    mistake(*node, fmt::format("'{}' must be a table", key));
    return nothing_;
  }

  // What nobody asked for is a typo.
  void expect_read(const toml::table& in) {
    for (const auto& [key, value] : in)
      if (value.is_table())
        expect_read(*value.as_table());
      else if (!key.str().ends_with("source") && !asked_.contains(&value))
        mistake(value, fmt::format("'{}' is no constant of NCCL's", printable(key.str())));
  }
  bool has(const toml::table& in, std::string_view key) {
    asked_.insert(in.get(key));
    return in.contains(key);
  }

  // What is not there stays as it was.
  void set(const toml::table& in, std::string_view key, double& value) {
    if (has(in, key)) value = need_number<double>(in, key, 0, HUGE_VAL);
  }
  void set(const toml::table& in, std::string_view key, Seconds& value) {
    if (has(in, key)) value = microseconds(need_number<double>(in, key, 0, 1e9));
  }
  void set(const toml::table& in, std::string_view key, Bandwidth& value) {
    if (has(in, key)) value = gigabytes(need_number<double>(in, key, 0, HUGE_VAL));
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) void set(const toml::table& in, std::string_view key, T& value) {
    if (has(in, key)) value = static_cast<T>(need_number<int64_t>(in, key, 0, kMost));
  }
  void set(const toml::table& in, std::string_view key, bool& value) {
    if (has(in, key)) value = need<bool>(in, key);
  }
  void set(const toml::table& in, std::string_view key, PathClass& value) {
    if (!has(in, key)) return;
    const auto path = word<PathClass>(need<std::string>(in, key));
    if (path)
      value = *path;
    else
      mistake(*in.get(key), fmt::format("'{}' is no class of paths", key));
  }
  template <class T, size_t N>
  void set_all(const toml::table& in, std::string_view key, std::array<T, N>& values,
               T (*convert)(double)) {
    if (!has(in, key)) return;
    const toml::array& numbers = list(in, key);
    if (numbers.size() != N)
      mistake(*in.get(key), fmt::format("'{}' must hold {} numbers", key, N));
    for (size_t i = 0; i < N && status_; i++) {
      const auto number = numbers[i].value<double>();
      if (number && *number >= 0)
        values[i] = convert(*number);
      else
        mistake(numbers[i], fmt::format("'{}' must hold numbers, none below 0", key));
    }
  }

  void read_latencies(const toml::table& root) {
    const toml::table& latency = table(root, "latency");
    const auto read = [&](std::string_view key, NcclRelease::Latencies& into) {
      for (size_t a = 0; a < kNcclAlgorithms; a++)
        set_all(table(latency, key), Names<Algorithm>::all[a], into[a], from_microseconds);
    };
    read("base", release_.latency.base);
    read("nvlink", release_.latency.nvlink);
    read("pci", release_.latency.pci);
    read("network", release_.latency.network);
  }

  void read_bandwidths(const toml::table& root) {
    const toml::table& bandwidth = table(root, "bandwidth");
    const auto read = [&](std::string_view key, NcclRelease::Limits& into) {
      for (size_t g = 0; g < kNcclGenerations; g++)
        set_all(table(bandwidth, key), Names<NcclGeneration>::all[g], into[g], gigabytes);
    };
    read("ll", release_.bandwidth.ll);
    read("ring_ll128", release_.bandwidth.ring_ll128);
    read("tree_ll128", release_.bandwidth.tree_ll128);
    read("tree", release_.bandwidth.tree);
    read("nvls_tree", release_.bandwidth.nvls_tree);
  }

  void read_algorithms(const toml::table& root) {
    read_shares(table(root, "share"));
    read_nvls(table(root, "nvls"));
    const toml::table& collnet = table(root, "collnet");
    set(collnet, "most_ranks_per_node_direct", release_.collnet.most_ranks_per_node_direct);
    set(collnet, "most_ranks_per_node_chain", release_.collnet.most_ranks_per_node_chain);
    set(collnet, "serialization", release_.collnet.serialization);
    const toml::table& pat = table(root, "pat");
    set(pat, "network_divisor", release_.pat.network_divisor);
    set(pat, "rank", release_.pat.rank);
    set(pat, "compute_capability", release_.pat.compute_capability);
    const toml::table& plateau = table(root, "ring_plateau");
    set(plateau, "bytes", release_.ring_plateau.bytes);
    set(plateau, "factor", release_.ring_plateau.factor);
    set(plateau, "factor_volta", release_.ring_plateau.factor_volta);
  }

  void read_shares(const toml::table& in) {
    auto& share = release_.share;
    set(in, "ring_ll", share.ring_ll);
    set(in, "ring_ll128", share.ring_ll128);
    set(in, "tree", share.tree);
    set(in, "tree_ll", share.tree_ll);
    set(in, "tree_ll128", share.tree_ll128);
    set(in, "tree_ll128_one_node", share.tree_ll128_one_node);
    set(in, "plain_tree", share.plain_tree);
    set(in, "pat", share.pat);
    set(in, "collnet_direct_network", share.collnet_direct_network);
    set(in, "collnet_direct_hopper", share.collnet_direct_hopper);
  }

  void read_nvls(const toml::table& in) {
    if (has(in, "rate")) {
      const auto rate = need<std::string>(in, "rate");
      release_.nvls.multicast = rate == "multicast";
      if (!release_.nvls.multicast && rate != "graph")
        mistake(*in.get("rate"), "'rate' must be \"graph\" or \"multicast\"");
    }
    set_all(in, "efficiency", release_.nvls.efficiency, as_it_is);
    set(in, "network_share", release_.nvls.network_share);
    set(in, "algorithm_share", release_.nvls.algorithm_share);
    set(in, "least_ranks_per_node", release_.nvls.least_ranks_per_node);
    set(in, "most_ranks_per_node", release_.nvls.most_ranks_per_node);
  }

  void read_protocols(const toml::table& root) {
    const toml::table& ll128 = table(root, "ll128");
    set(ll128, "within", release_.ll128.within);
    set(ll128, "across", release_.ll128.across);
    set(ll128, "across_hopper", release_.ll128.across_hopper);
    set(ll128, "compute_capability", release_.ll128.compute_capability);
    set(ll128, "mixed_compute_capability", release_.ll128.mixed_compute_capability);
    const toml::table& correction = table(root, "tree_correction");
    for (size_t p = 0; p < kNcclProtocols; p++)
      set_all(correction, Names<Protocol>::all[p], release_.tree_correction.factor[p], as_it_is);
    set(correction, "tree_columns", release_.tree_correction.tree_columns);
    set(correction, "nvls_tree_columns", release_.tree_correction.nvls_tree_columns);
    set(correction, "nvls_tree_compute_capability",
        release_.tree_correction.nvls_tree_compute_capability);
    const toml::table& post = table(root, "network_post");
    set(post, "amd", release_.network_post.amd);
    set(post, "other", release_.network_post.other);
    set(post, "simple_factor", release_.network_post.simple_factor);
  }

  void read_launch(const toml::table& root) {
    const toml::table& in = table(root, "threads");
    auto& threads = release_.threads;
    set(in, "simple", threads.simple);
    set(in, "simple_slow_ring", threads.simple_slow_ring);
    set(in, "slow_ring", threads.slow_ring);
    set(in, "ll", threads.ll);
    set(in, "ll128", threads.ll128);
    set(in, "most", threads.most);
    set(in, "least", threads.least);
    set(in, "bytes_ll", threads.bytes_ll);
    set(in, "bytes_ll128", threads.bytes_ll128);
    set(in, "bytes_simple", threads.bytes_simple);
    set(in, "bytes_collnet", threads.bytes_collnet);
    const toml::table& channels = table(root, "channels");
    set(channels, "least_traffic", release_.channels.least_traffic);
    set(channels, "collnet_direct", release_.channels.collnet_direct);
    set(channels, "work_batch", release_.channels.work_batch);
    set(channels, "as_many_as_nvls", release_.channels.as_many_as_nvls);
    if (has(root, "nvls_channels")) release_.nvls_channels.clear();
    for_each_table(root, "nvls_channels", [&](const toml::table& rule) { read_rule(rule); });
  }

  void read_rule(const toml::table& in) {
    NcclRelease::NvlsChannels rule;
    set(in, "compute_capability", rule.compute_capability);
    set(in, "nodes", rule.nodes);
    set(in, "most_nodes", rule.most_nodes);
    set(in, "most_ranks_per_node", rule.most_ranks_per_node);
    set(in, "slowest_port", rule.slowest_port);
    set(in, "channels", rule.channels);
    release_.nvls_channels.push_back(rule);
  }

  void read_search(const toml::table& in) {
    set(in, "farther_nics_below", release_.search.farther_nics_below);
    for (size_t g = 0; g < kNcclGenerations; g++) {
      read_rates(table(in, "within"), Names<NcclGeneration>::all[g], release_.search.within[g]);
      read_rates(table(in, "across"), Names<NcclGeneration>::all[g], release_.search.across[g]);
    }
  }

  void read_rates(const toml::table& in, std::string_view key, std::vector<Bandwidth>& rates) {
    if (!has(in, key)) return;
    rates.clear();
    for (const toml::node& rate : list(in, key)) rates.push_back(gigabytes(rate.value_or(0.0)));
    if (rates.empty() || !std::ranges::is_sorted(rates, std::greater()) ||
        rates.back() <= Bandwidth{})
      mistake(*in.get(key), fmt::format("'{}' must hold rates, the highest first", key));
  }

  NcclRelease& release_;
  const toml::table nothing_;
  std::set<const toml::node*> asked_;
};

// Whether one is of a later or earlier minor release than the other, not only another patch.
bool later(const NcclVersion& a, const NcclVersion& b) {
  return std::pair(a.major, a.minor) > std::pair(b.major, b.minor);
}

std::string note_about(const NcclVersion& asked, const NcclVersion& oldest,
                       const NcclVersion& newest) {
  const bool old = later(oldest, asked);
  if (!old && !later(asked, newest)) return "";
  return fmt::format("NCCL {} is {} than what is known of its decisions, {} to {}: taken for {}",
                     to_text(asked), old ? "older" : "newer", to_text(oldest), to_text(newest),
                     to_text(old ? oldest : newest));
}

constexpr size_t kConstants = sizeof(NcclConstants) / sizeof(double);

std::array<double, kConstants> numbers_of(const NcclConstants& constants) {
  return std::bit_cast<std::array<double, kConstants>>(constants);
}

// Constants that no decision reads are not in our data.
bool has(const NcclRelease& release, const std::array<double, kConstants>& shown) {
  const auto told = numbers_of({release.latency, release.bandwidth});
  for (size_t i = 0; i < kConstants; i++)
    if (told[i] != 0 && std::abs(told[i] - shown[i]) > 1e-9 * told[i]) return false;
  return true;
}

}  // namespace

uint64_t NcclConstants::digest() const {
  Digest digest;
  for (const double number : numbers_of(*this)) digest.add(std::bit_cast<uint64_t>(number));
  return digest.value();
}

std::optional<NcclRelease> release_of(const NcclConstants& shown) {
  const auto numbers = numbers_of(shown);
  std::optional<NcclRelease> found;
  NcclRelease release;
  for (const EmbeddedToml& file : known_nccl_releases()) {
    if (!read_nccl_release(file.toml, release)) return std::nullopt;
    if (has(release, numbers)) found = release;
  }
  return found;
}

Result<NcclVersion> parse_nccl_version(std::string_view text) {
  NcclVersion version{0, 0, UINT32_MAX};
  const std::string_view number = text.substr(0, text.find('-'));
  const char *at = number.data(), *const end = at + number.size();
  size_t parts = 0;
  for (uint32_t* const part : {&version.major, &version.minor, &version.patch}) {
    const auto [rest, error] = std::from_chars(at, end, *part);
    if (error != std::errc()) break;
    parts++;
    at = rest;
    if (at == end || *at != '.') break;
    at++;
  }
  if (parts >= 2 && at == end && end[-1] != '.') return version;
  return fail(Code::invalid, "'{}' is no release of NCCL, as 2.28.9", printable(text));
}

std::string to_text(const NcclVersion& version) {
  if (version.patch == UINT32_MAX) return fmt::format("{}.{}", version.major, version.minor);
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Status read_nccl_release(std::string_view toml, NcclRelease& release) {
  return parse_toml(toml, [&](const toml::table& root) { return Reader(release).read(root); });
}

Result<KnownNcclRelease> find_nccl_release(const NcclVersion& version) {
  KnownNcclRelease found;
  NcclVersion oldest, newest;
  for (const EmbeddedToml& file : known_nccl_releases()) {
    const auto changed = parse_nccl_version(file.name);
    if (!changed) return pass(changed, "data/nccl");
    const bool first = found.from.empty();
    if (first) oldest = *changed;
    newest = *changed;
    if (!first && *changed > version) continue;
    if (const Status read = read_nccl_release(file.toml, found.release); !read)
      return pass(read, file.name);
    found.from = file.name;
  }
  found.note = note_about(version, oldest, newest);
  return found;
}

}  // namespace crosstie
