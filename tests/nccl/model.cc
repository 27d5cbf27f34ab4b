// SPDX-License-Identifier: Apache-2.0
// model LOG FILE NODES [NAME]: whether NCCL, as the log of its rank 0 tells
// (NCCL_DEBUG_SUBSYS=GRAPH,INIT, TUNING), found the graphs, costs, channels and choices that we
// find for that many nodes with the topology file: every one that it tells. NAME is the known
// machine that FILE was written of. Such lines are meant:
//   Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1
//   24 coll channels, 24 collnet channels, 16 nvls channels, …
//     Algorithm   |                            Tree                  |            Ring  …
//        AllReduce |    15.2/  43.6 |    31.5/ 128.8 |    64.4/ 165.6 |    15.0/  80.6 | …
//   AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

#include "cost/nccl/model.h"
#include "cost/nccl/pair.h"
#include "cost/nccl/search.h"
#include "known.h"

namespace crosstie {
namespace {

std::string text_of(const NcclGraph& graph) {
  return fmt::format(
      "Pattern {}, crossNic {}, nChannels {}, bw {:.6f}/{:.6f}, type {}/{}, "
      "sameChannels {}",
      static_cast<int>(graph.pattern), graph.cross_nic, graph.channels,
      graph.intra.bytes_per_second / 1e9, graph.inter.bytes_per_second / 1e9,
      name(graph.type_intra), name(graph.type_inter), graph.same_channels ? 1 : 0);
}

class Comparison {
 public:
  // The graphs as found, before rings and trees are cut to equal numbers.
  Comparison(const NcclModel& model, const NcclGraphs& found)
      : model_(model), graphs_{found.ring, found.tree, found.nvls} {}

  void line(const std::string& text) {
    std::smatch match;
    if (std::regex_search(text, match, graph_)) return graph(match[1]);
    if (std::regex_search(text, match, channels_)) return channels(match);
    if (std::regex_search(text, match, run_)) return run(match);
    if (std::regex_search(text, match, algorithms_)) return algorithms(match[1]);
    if (std::regex_search(text, match, costs_)) return costs(match);
  }

  bool verdict() const {
    fmt::print("{} graphs, {} costs, {} operations, {} differ\n", told_graphs_, told_costs_,
               told_runs_, different_);
    return told_graphs_ >= 2 && told_channels_ > 0 && told_costs_ > 0 && different_ == 0;
  }

 private:
  void expect(const std::string& own, const std::string& nccl) {
    if (own == nccl) return;
    different_++;
    fmt::print("here {}\nNCCL {}\n", own, nccl);
  }

  void graph(const std::string& nccl) {
    if (told_graphs_ < std::size(graphs_)) expect(text_of(graphs_[told_graphs_]), nccl);
    told_graphs_++;
  }

  void channels(const std::smatch& told) {
    told_channels_++;
    const uint32_t nvls = model_.job().nvls ? model_.nvls_channels() : 0;
    expect(fmt::format("{} channels, {} of NVLS", model_.job().channels, nvls),
           fmt::format("{} channels, {} of NVLS", told.str(1), told.str(2)));
  }

  void run(const std::smatch& told) {
    told_runs_++;
    const auto collective = spelled<Collective>(told.str(1));
    if (!collective) return;
    const uint64_t bytes =
        std::stoull(told[2]) * (has_shares(*collective) ? model_.job().ranks : 1);
    const auto pick = model_.pick({*collective, bytes});
    const auto algorithm = spelled<Algorithm>(told.str(3));
    const auto protocol = spelled<Protocol>(told.str(4));
    const auto text = [&](auto a, auto p, uint32_t channels) {
      return fmt::format("{} {}: {}/{} {}", name(*collective), bytes, name(a), name(p), channels);
    };
    if (algorithm && protocol && pick)
      return expect(text(pick->algorithm, pick->protocol, pick->channels),
                    text(*algorithm, *protocol,
                         static_cast<uint32_t>(std::stoul(told[6]) - std::stoul(told[5]) + 1)));
    different_++;
    fmt::print("not understood: {}\n", told.str(0));
  }

  void algorithms(const std::string& header) {
    columns_.clear();
    for (std::sregex_iterator i(header.begin(), header.end(), word_), end; i != end; ++i)
      if (const auto algorithm = spelled<Algorithm>(i->str())) columns_.push_back(*algorithm);
  }

  void costs(const std::smatch& told) {
    const auto collective = spelled<Collective>(told.str(1));
    const std::string cells = told[2];
    size_t column = 0;
    for (std::sregex_iterator i(cells.begin(), cells.end(), cell_), end; i != end; ++i, ++column)
      if (collective && column / 3 < columns_.size())
        cost(*collective, columns_[column / 3], static_cast<Protocol>(column % 3), *i);
  }

  // The latency of what is not allowed is of no account.
  void cost(Collective collective, Algorithm algorithm, Protocol protocol,
            const std::smatch& cell) {
    told_costs_++;
    const auto& own = model_.cost(collective, algorithm, protocol);
    const double latency = std::stod(cell[1]), rate = std::stod(cell[2]);
    const double own_rate = own.bandwidth.bytes_per_second / 1e9;
    if (rate == 0 && own_rate < 0.05) return;
    // Halves are rounded either way.
    if (std::abs(own.latency.count() * 1e6 - latency) < 0.051 && std::abs(own_rate - rate) < 0.051)
      return;
    different_++;
    fmt::print("{} {}/{}: here {:.2f}/{:.2f}, NCCL {}/{}\n", name(collective), name(algorithm),
               name(protocol), own.latency.count() * 1e6, own_rate, latency, rate);
  }

  const std::regex graph_{"(Pattern [0-9]+, crossNic .*)"};
  const std::regex channels_{R"((\d+) coll channels, \d+ collnet channels, (\d+) nvls channels)"};
  const std::regex run_{
      R"((\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\S*=\{(\d+)\.\.(\d+))"};
  const std::regex algorithms_{R"(NCCL INFO   Algorithm   \|(.*))"};
  const std::regex costs_{R"(NCCL INFO +(\w+) \|( *[0-9.]+/ *[0-9.]+ \|.*))"};
  const std::regex cell_{R"(([0-9.]+)/ *([0-9.]+) \|)"};
  const std::regex word_{"[A-Za-z]+"};

  const NcclModel& model_;
  const NcclGraph graphs_[3];
  std::vector<Algorithm> columns_;
  size_t told_graphs_ = 0, told_channels_ = 0, told_costs_ = 0, told_runs_ = 0, different_ = 0;
};

// "NCCL version 2.28.9+cuda13.0"
std::string version_in(const std::vector<std::string>& log) {
  const std::regex version(R"(NCCL version (\d+\.\d+\.\d+))");
  std::smatch match;
  for (const std::string& line : log)
    if (std::regex_search(line, match, version)) return match[1];
  return "";
}

std::vector<std::string> lines_of(const char* file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Result<bool> compare(const char* log_file, const char* file, uint32_t nodes, const char* known) {
  const auto log = lines_of(log_file);
  const auto version = parse_nccl_version(version_in(log));
  if (!version) return pass(version, log_file);
  const auto release = find_nccl_release(*version);
  if (!release) return pass(release);
  const auto machine = read_as_known(file, known);
  if (!machine) return pass(machine);
  const NcclNodes alike{&*machine, nodes};
  const auto job = find_nccl_job(release->release, std::span(&alike, 1));
  if (!job) return pass(job);
  const NcclModel model(release->release, *job);
  const auto found = find_nccl_graphs(release->release, alike, nodes > 1);
  if (!found) return pass(found);
  Comparison comparison(model, *found);
  for (const std::string& line : log) comparison.line(line);
  return comparison.verdict();
}

int answer(const char* log, const char* file, const char* nodes, const char* known) {
  const auto same = compare(log, file, static_cast<uint32_t>(std::stoul(nodes)), known);
  if (same) return *same ? 0 : 1;
  fmt::print("{}\n", same.error().text);
  return 3;
}

}  // namespace
}  // namespace crosstie

int main(int argc, char** argv) {
  if (argc == 4 || argc == 5) return crosstie::answer(argv[1], argv[2], argv[3], argv[4]);
  fmt::print(stderr, "usage: model LOG FILE NODES [NAME]\n");
  return 2;
}
