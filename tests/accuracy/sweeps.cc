// SPDX-License-Identifier: Apache-2.0
#include "sweeps.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "cost/facts_toml.h"
#include "cost/system.h"
#include "topology/format/formats.h"
#include "topology/variation.h"

namespace crosstie {
namespace {

std::vector<std::string> strings(const toml::node_view<const toml::node>& list) {
  std::vector<std::string> texts;
  if (const toml::array* array = list.as_array())
    for (const toml::node& entry : *array) texts.push_back(entry.value_or(std::string()));
  return texts;
}

// "dgx-h100", "dgx-h100:nics=4x400G".
std::shared_ptr<const Machine> machine_of(const std::string& text) {
  const Varied varied = split_variation(text);
  auto topology = read_synthetic(varied.name);
  if (topology && !varied.changes.empty()) {
    const auto by = parse_variation(varied.changes);
    topology = by ? vary(*topology, *by) : pass(by);
  }
  if (!topology) fmt::print(stderr, "{}: {}\n", text, topology.error().text), std::abort();
  return topology->hosts.front().machine;
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
  if (const auto machine = in["machine"].value<std::string>())
    system.machine = machine_of(*machine);
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
                  1,
                  *collective,
                  algorithm_of(row.at("algo")),
                  protocol_of(row.at("proto")),
                  row.at("variant").find("NVLS_ENABLE=0") == std::string::npos,
                  row.at("nccl_version"),
                  number(row.at("size_bytes")),
                  microseconds(us),
                  {}};
  const auto ranks = static_cast<uint32_t>(number(row.at("gpus")));
  const auto hosts = static_cast<uint32_t>(number(row.at("nodes")));
  result.hosts = std::max(1u, hosts);
  const uint32_t in_domain = std::min(hosts, system->hosts_in_domain);
  result.job = {ranks, std::max(1u, hosts / in_domain), system->gpus_per_process};
  result.facts = result.facts.of_hosts(in_domain);
  result.facts.multicast &= result.multicast;
  const auto ran = as_run(result);
  if (!ran) return std::nullopt;
  result.ran = *ran;
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

namespace {

NcclModel model_of_job(const Measured& of) {
  const auto version = parse_nccl_version(of.release.empty() ? "2.28.9" : of.release.substr(0, 6));
  const auto release = find_nccl_release(version ? *version : NcclVersion{2, 28, 9});
  const auto job =
      model_job(of.system->machine, of.hosts, of.job.ranks / of.hosts, release->release);
  if (!job) fmt::print(stderr, "{}: {}\n", of.system->name, job.error().text), std::abort();
  return NcclModel(release->release, job->nccl);
}

}  // namespace

// The search for graphs takes a while, and many times are of one job.
const NcclModel* nccl_model_of(const Measured& of) {
  static std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, NcclModel> models;
  if (!of.system->machine) return nullptr;
  const auto key = std::tuple(of.system->name, of.hosts, of.job.ranks, of.release);
  const auto known = models.find(key);
  return &(known != models.end() ? known : models.emplace(key, model_of_job(of)).first)->second;
}

std::optional<NcclPair> as_run(const Measured& of) {
  if (of.algorithm && of.protocol) return NcclPair{*of.algorithm, *of.protocol};
  const NcclModel* const nccl = nccl_model_of(of);
  if (!nccl) return std::nullopt;
  NcclLimits limits;
  if (of.algorithm) limits.only(*of.algorithm);
  if (of.protocol) limits.only(*of.protocol);
  if (!of.multicast) (void)limits.set("NCCL_NVLS_ENABLE", "0");
  return as_run(*nccl, {of.collective, of.bytes}, limits);
}

}  // namespace crosstie
