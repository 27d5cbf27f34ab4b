// SPDX-License-Identifier: Apache-2.0
#include "sweeps.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "cost/facts_toml.h"

namespace crosstie {
namespace {

std::vector<std::string> strings(const toml::node_view<const toml::node>& list) {
  std::vector<std::string> texts;
  if (const toml::array* array = list.as_array())
    for (const toml::node& entry : *array) texts.push_back(entry.value_or(std::string()));
  return texts;
}

SweepSystem read_system(const toml::table& in) {
  SweepSystem system;
  system.name = in["name"].value_or(std::string());
  system.sweeps = strings(in["sweeps"]);
  system.variants = strings(in["variants"]);
  system.without = strings(in["without"]);
  const auto facts = read_facts(*in["facts"].as_table());
  if (facts)
    system.facts = *facts;
  else
    fmt::print(stderr, "{}: {}\n", system.name, facts.error().text), std::abort();
  system.hosts_in_domain = in["hosts_in_domain"].value_or(1u);
  system.gpus_per_process = in["gpus_per_process"].value_or(1u);
  return system;
}

// A line of comma-separated values, of which some are in quotes.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

using Row = std::map<std::string, std::string>;

bool begins(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& of) { return text.starts_with(of); });
}
bool holds(const std::string& text, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& of) { return text.find(of) != text.npos; });
}

const SweepSystem* system_of(const Row& row, const std::vector<SweepSystem>& systems) {
  for (const SweepSystem& system : systems)
    if (begins(row.at("system"), system.sweeps) &&
        (system.variants.empty() || begins(row.at("variant"), system.variants)))
      return holds(row.at("variant"), system.without) ? nullptr : &system;
  return nullptr;
}

// "NVLSTree" is nvls_tree.
std::optional<Algorithm> algorithm_of(const std::string& text) {
  static constexpr std::pair<std::string_view, Algorithm> kNames[] = {
      {"Ring", Algorithm::ring},
      {"Tree", Algorithm::tree},
      {"NVLS", Algorithm::nvls},
      {"NVLSTree", Algorithm::nvls_tree}};
  for (const auto& [name, algorithm] : kNames)
    if (name == text) return algorithm;
  return std::nullopt;
}
std::optional<Protocol> protocol_of(const std::string& text) {
  static constexpr std::pair<std::string_view, Protocol> kNames[] = {
      {"LL", Protocol::ll}, {"LL128", Protocol::ll128}, {"Simple", Protocol::simple}};
  for (const auto& [name, protocol] : kNames)
    if (name == text) return protocol;
  return std::nullopt;
}

uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

std::optional<Measured> measured_of(const Row& row, const std::vector<SweepSystem>& systems) {
  const SweepSystem* system = system_of(row, systems);
  const auto collective = word<Collective>(row.at("collective"));
  const double us = std::strtod(row.at("time_us").c_str(), nullptr);
  if (!system || !collective || us <= 0) return std::nullopt;
  Measured result{system,
                  system->facts,
                  {},
                  *collective,
                  algorithm_of(row.at("algo")),
                  protocol_of(row.at("proto")),
                  row.at("variant").find("NVLS_ENABLE=0") == std::string::npos,
                  row.at("nccl_version"),
                  number(row.at("size_bytes")),
                  microseconds(us)};
  const auto ranks = static_cast<uint32_t>(number(row.at("gpus")));
  const auto hosts = static_cast<uint32_t>(number(row.at("nodes")));
  const uint32_t in_domain = std::min(hosts, system->hosts_in_domain);
  result.job = {ranks, std::max(1u, hosts / in_domain), system->gpus_per_process};
  result.facts = result.facts.of_hosts(in_domain);
  result.facts.multicast &= result.multicast;
  return result;
}

auto arm_of(const Measured& of) {
  return std::tuple(of.system->name, of.collective, of.job.ranks, of.job.nodes, of.bytes,
                    of.algorithm, of.protocol, of.multicast, of.release);
}

}  // namespace

std::vector<SweepSystem> read_systems(const std::string& file) {
  const toml::parse_result parsed = toml::parse_file(file);
  std::vector<SweepSystem> systems;
  for (const toml::node& entry : *parsed["system"].as_array())
    systems.push_back(read_system(*entry.as_table()));
  return systems;
}

Sweeps read_sweeps(const std::string& directory, const std::vector<SweepSystem>& systems) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Sweeps sweeps;
  std::map<decltype(arm_of(std::declval<Measured>())), std::vector<Measured>> arms;
  for (const auto& file : files) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> head = split(line);
    while (std::getline(in, line)) {
      const std::vector<std::string> cells = split(line);
      Row row;
      for (size_t i = 0; i < head.size(); i++) row[head[i]] = i < cells.size() ? cells[i] : "";
      sweeps.rows++;
      if (const auto measured = measured_of(row, systems))
        arms[arm_of(*measured)].push_back(*measured);
      else
        sweeps.left_out++;
    }
  }
  for (auto& [arm, times] : arms) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end(),
                     [](const Measured& a, const Measured& b) { return a.time < b.time; });
    sweeps.measured.push_back(*middle);
  }
  return sweeps;
}

// NCCL's graphs, as its search finds them where all links are alike: as many channels as there are
// NICs, or as the GPUs' links carry at the speeds that it tries (nccl-model.md, sections 9, 13).
NcclModel nccl_model_of(const Measured& of) {
  const SystemFacts& facts = of.facts;
  const bool one = of.job.nodes == 1, nvlink = facts.has_nvlink();
  const uint32_t gpus = std::max(1u, of.job.ranks / of.job.nodes);
  NcclJob job;
  job.ranks = of.job.ranks, job.nodes = of.job.nodes;
  job.most_ranks_per_node = job.fewest_ranks_per_node = gpus;
  job.min_compute_capability = job.max_compute_capability =
      facts.amd_gpus() ? 80 : facts.compute_capability;
  job.cpu = facts.cpu == CpuVendor::amd   ? NcclCpu::amd
            : facts.cpu == CpuVendor::arm ? NcclCpu::arm
                                          : NcclCpu::intel;
  job.nvls = job.nvswitch = facts.multicast;
  NcclGraph& ring = job.graphs.ring;
  ring.pattern = NcclPattern::ring;
  ring.type_intra = nvlink ? PathClass::nvl : PathClass::phb;
  ring.type_inter = one ? PathClass::pix
                    : facts.nics_behind_cpu || facts.network == Network::slingshot ||
                            facts.network >= Network::sockets
                        ? PathClass::phb
                        : PathClass::pix;
  const double inside = (nvlink ? 0.8 : 0.5) * facts.gpu_wire.bytes_per_second / 1e9;
  ring.channels = one ? (nvlink ? 12 : 2) : std::max(1u, facts.nics);
  const double across = 0.96 * facts.nic_wire.bytes_per_second / 1e9;
  const double speed = one ? inside / ring.channels : std::min(across, inside);
  ring.intra = ring.inter = gigabytes(speed);
  ring.same_channels = one;
  job.graphs.tree = ring;
  job.graphs.tree.pattern = one                              ? NcclPattern::balanced_tree
                            : facts.compute_capability >= 90 ? NcclPattern::tree
                                                             : NcclPattern::balanced_tree;
  NcclGraph& nvls = job.graphs.nvls;
  nvls = ring;
  nvls.pattern = NcclPattern::nvls;
  nvls.channels = one ? gpus : std::min(gpus, std::max(1u, facts.nics));
  nvls.intra = gigabytes(inside / std::max(8u, nvls.channels));
  nvls.inter = one ? gigabytes(1.5 * inside / 8) : ring.inter;
  job.channels = 2 * ring.channels;
  job.slowest_port = facts.nic_wire;
  const auto version = parse_nccl_version(of.release.empty() ? "2.28.9" : of.release.substr(0, 6));
  const auto release = find_nccl_release(version ? *version : NcclVersion{2, 28, 9});
  return NcclModel(release->release, job);
}

NcclPair as_run(const Measured& of) {
  NcclLimits limits;
  if (of.algorithm) limits.only(*of.algorithm);
  if (of.protocol) limits.only(*of.protocol);
  return *as_run(nccl_model_of(of), {of.collective, of.bytes}, limits);
}

}  // namespace crosstie
