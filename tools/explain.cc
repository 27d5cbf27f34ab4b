// SPDX-License-Identifier: Apache-2.0
// crosstie explain: which algorithm, protocol and channels a collective should run with on a
// system, by size, with all candidates, the bound, what NCCL would run, and why.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "choice/decision.h"
#include "cost/profile.h"
#include "cost/system.h"
#include "system.h"
#include "topo.h"
#include "topology/format/file.h"

namespace crosstie::tools {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainOptions {
  std::string collective, system, bytes = "1K:1G", nccl = "2.28.9", profile, output = "-";
  std::string executor = "nccl";
  uint32_t nodes = 0, gpus_per_node = 0;
  bool json = false, all = false;
};

// A crossover: from that size on another choice.
struct Crossover {
  uint64_t bytes;
  Considered from, to;
};

// "8,1K,4M" or "1K:1G", by factors of 2.
Result<std::vector<uint64_t>> sizes_of(std::string_view text) {
  std::vector<uint64_t> sizes;
  const size_t colon = text.find(':');
  if (colon != text.npos) {
    const auto first = parse_bytes(text.substr(0, colon));
    const auto last = parse_bytes(text.substr(colon + 1));
    if (!first) return pass(first, "--bytes");
    if (!last) return pass(last, "--bytes");
    if (*first == 0 || *first > *last)
      return fail(Code::invalid, "--bytes: '{}' is no range from a size above 0 to a larger one",
                  text);
    for (uint64_t size = *first; size <= *last && size >= *first; size *= 2) sizes.push_back(size);
    return sizes;
  }
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto size = parse_bytes(text.substr(0, comma));
    if (!size) return pass(size, "--bytes");
    if (*size == 0) return fail(Code::invalid, "--bytes: a size must be above 0");
    sizes.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return sizes;
}

Result<Profile> profile_of(const std::string& file) {
  if (file.empty()) return read_profile(known_profiles()[0].toml);
  auto text = read_text(file);
  if (!text) return pass(text);
  auto profile = read_profile(*text);
  if (!profile) return pass(profile, file);
  return profile;
}

// The JSON's words: "nvls-tree".
std::string hyphens(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c == '_') c = '-';
  return text;
}

std::string pair_text(const Considered& of) {
  return fmt::format("{}/{}", hyphens(name(of.algorithm)), name(of.protocol));
}

// To the nanosecond: what is beyond is noise of arithmetic.
double us(Seconds time) { return std::round(time.count() * 1e9) / 1e3; }

Json considered_json(const Considered& of) {
  return {{"executor", name(of.executor)},
          {"algorithm", hyphens(name(of.algorithm))},
          {"protocol", name(of.protocol)},
          {"channels", of.channels},
          {"time_us", us(of.prediction.time())}};
}

Json candidate_json(const Considered& of) {
  Json json = considered_json(of);
  json["valid"] = of.why_not.empty();
  if (!of.why_not.empty()) json["why_not"] = of.why_not;
  for (const Term& term : of.prediction.terms())
    json["terms"].push_back({{"name", term.name}, {"us", us(term.time)}, {"source", term.source}});
  return json;
}

Json decision_json(const Decision& decision) {
  Json json{{"bytes", decision.bytes}, {"choice", considered_json(decision.chosen())}};
  json["nccl"] = decision.nccl ? considered_json(*decision.nccl) : Json();
  for (const Considered& of : decision.candidates) json["candidates"].push_back(candidate_json(of));
  json["bound_us"] = us(decision.bound.time);
  json["bound_by"] = decision.bound.by;
  json["quality"] =
      std::round(1e3 * (decision.bound.time / decision.chosen().prediction.time())) / 1e3;
  json["reason"] = decision.reason;
  return json;
}

std::string explanation_json(const std::vector<Decision>& decisions,
                             const std::vector<Crossover>& crossovers) {
  Json json{{"schema", 1}, {"decisions", Json::array()}, {"crossovers", Json::array()}};
  for (const Decision& decision : decisions) json["decisions"].push_back(decision_json(decision));
  for (const Crossover& of : crossovers)
    json["crossovers"].push_back(
        {{"bytes", of.bytes}, {"from", considered_json(of.from)}, {"to", considered_json(of.to)}});
  return json.dump(2) + "\n";
}

std::string candidates_text(const Decision& decision) {
  std::string text;
  for (const Considered& of : decision.candidates) {
    text += fmt::format("    {:22} {:>10.1f} us {:>3} ch ", pair_text(of), us(of.prediction.time()),
                        of.channels);
    for (const Term& term : of.prediction.terms())
      text += fmt::format(" {} {:.1f}", term.name, us(term.time));
    text += of.why_not.empty() ? "\n" : fmt::format("  (no: {})\n", of.why_not);
  }
  return text;
}

std::string explanation_text(const std::vector<Decision>& decisions,
                             const std::vector<Crossover>& crossovers, bool all) {
  std::string text =
      fmt::format("{:>8}  {:22} {:>3} {:>10} {:>10} {:>5}  {:22} {:>10}  {}\n", "bytes", "choice",
                  "ch", "us", "bound us", "q", "NCCL", "us", "why");
  for (const Decision& of : decisions) {
    const Seconds time = of.chosen().prediction.time();
    text +=
        fmt::format("{:>8}  {:22} {:>3} {:>10.1f} {:>10.1f} {:>5.2f}  {:22} {:>10.1f}  {}\n",
                    bytes_text(of.bytes), pair_text(of.chosen()), of.chosen().channels, us(time),
                    us(of.bound.time), of.bound.time / time, of.nccl ? pair_text(*of.nccl) : "-",
                    of.nccl ? us(of.nccl->prediction.time()) : 0.0, of.reason);
    if (all) text += candidates_text(of);
  }
  for (const Crossover& of : crossovers)
    text +=
        fmt::format("from {} bytes: {} after {}\n", of.bytes, pair_text(of.to), pair_text(of.from));
  return text;
}

// The least size with the choice that the larger of two has, where it changes once between them.
Crossover crossover_between(const Decider& decider, Collective collective, const Decision& small,
                            const Decision& large) {
  uint64_t low = small.bytes, high = large.bytes;
  Crossover found{high, small.chosen(), large.chosen()};
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const auto decision = decider.decide(collective, middle);
    const bool changed = decision && !decision->chosen().same(small.chosen());
    (changed ? high : low) = middle;
    if (changed) found = {middle, small.chosen(), decision->chosen()};
  }
  return found;
}

Result<std::string> explain(const ExplainOptions& options, const Session& session) {
  const auto sizes = sizes_of(options.bytes);
  if (!sizes) return pass(sizes);
  const auto profile = profile_of(options.profile);
  if (!profile) return pass(profile);
  const auto version = parse_nccl_version(options.nccl);
  if (!version) return pass(version, "--nccl");
  const auto release = find_nccl_release(*version);
  if (!release) return pass(release, "--nccl");
  if (!release->note.empty()) session.log.warn("{}", release->note);
  const auto system = read_system(options.system, session);
  if (!system) return pass(system);
  const auto hosts = hosts_of_job(*system, options.nodes);
  if (!hosts) return pass(hosts);
  const auto job = model_job(system->kind, *hosts, options.gpus_per_node, release->release);
  if (!job) return pass(job);
  if (job->job.ranks < 2) return fail(Code::invalid, "one GPU alone has nothing to communicate");
  const CostModel cost(profile->values, job->facts, job->job);
  const NcclModel nccl(release->release, job->nccl);
  const CommunicatorShape shape{job->job.ranks, job->job.nodes, job->nccl.fewest_ranks_per_node,
                                job->nccl.most_ranks_per_node};
  const CommunicatorClass of = ClassRules::built_in().of(TrafficClass::unknown, shape);
  const Decider decider({cost, nccl, job->facts, job->job, *word<Executor>(options.executor), of});
  const Collective collective = *spelled<Collective>(options.collective);
  std::vector<Decision> decisions;
  std::vector<Crossover> crossovers;
  for (const uint64_t size : *sizes) {
    const auto decision = decider.decide(collective, size);
    if (!decision)
      return fail(Code::invalid, "executor {} has nothing for {} on such a job", options.executor,
                  name(collective));
    if (!decisions.empty() && decisions.back().bytes < size &&
        !decisions.back().chosen().same(decision->chosen()))
      crossovers.push_back(crossover_between(decider, collective, decisions.back(), *decision));
    decisions.push_back(*decision);
  }
  const bool json = options.json || options.output.ends_with(".json");
  return json ? explanation_json(decisions, crossovers)
              : explanation_text(decisions, crossovers, options.all);
}

int run(const ExplainOptions& options, const Session& session) {
  const auto text = explain(options, session);
  if (!text) return report(session, text.error());
  return deliver(session, options.output, *text, kClean);
}

CLI::Validator is_a_collective() {
  return CLI::Validator(
      [](std::string& text) {
        return spelled<Collective>(text) ? std::string()
                                         : fmt::format("'{}' is none of {}", text,
                                                       fmt::join(Names<Collective>::all, ", "));
      },
      "COLLECTIVE");
}
template <class Word>
CLI::IsMember one_of() {
  return CLI::IsMember(std::vector<std::string>(Names<Word>::all.begin(), Names<Word>::all.end()));
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* const explain =
      app.add_subcommand("explain", "Say which algorithm a collective should run with, and why");
  explain->add_option("collective", options->collective, "all_reduce, all_gather, …")
      ->required()
      ->check(is_a_collective());
  add_system(*explain, options->system)->required();
  explain->add_option("--nodes", options->nodes, "Hosts; all of a cluster, else one")
      ->check(CLI::Range(1, 1 << 20));
  explain->add_option("--gpus-per-node", options->gpus_per_node, "GPUs in use of each host; all");
  explain->add_option("--bytes", options->bytes, "Sizes: a list, or a range by factors of 2")
      ->check(names_something())
      ->capture_default_str();
  explain->add_option("--executor", options->executor, "Who runs it")
      ->check(one_of<Executor>())
      ->capture_default_str();
  explain->add_option("--nccl", options->nccl, "NCCL's release")->capture_default_str();
  explain->add_option("--profile", options->profile, "A profile of `crosstie calibrate`; built in")
      ->check(names_something());
  explain->add_option("-o,--output", options->output, "Where to; - is standard output")
      ->check(of_suffix({".txt", ".json"}))
      ->capture_default_str();
  explain->add_flag("--json", options->json, "JSON instead of text");
  explain->add_flag("--all", options->all, "All candidates with their terms");
  explain->callback([options, &session] {
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
