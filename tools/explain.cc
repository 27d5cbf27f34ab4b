// SPDX-License-Identifier: Apache-2.0
// crosstie explain: which algorithm, protocol and channels a collective should run with on a
// system, by size, with all candidates, the bound, what NCCL would run, and why.
#include "explain.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "cost/profile.h"
#include "cost/system.h"
#include "nccl/options.h"
#include "system.h"
#include "topo.h"
#include "topology/format/file.h"

namespace crosstie::tools {
namespace {

struct ExplainOptions {
  std::string collective, system, bytes = "1K:1G", nccl = "2.28.9", profile, output = "-";
  std::string executor = "nccl", traffic = "unknown", class_rules;
  uint32_t nodes = 0, gpus_per_node = 0;
  bool json = false, all = false;
};

Result<uint64_t> size_of(std::string_view text) {
  const auto size = parse_bytes(text);
  if (!size) return pass(size, "--bytes");
  if (*size == 0) return fail(Code::invalid, "--bytes: a size must be above 0");
  return size;
}

// "8,1K,4MiB" or "1K:1G", by factors of 2.
Result<std::vector<uint64_t>> sizes_of(std::string_view text) {
  std::vector<uint64_t> sizes;
  if (const size_t colon = text.find(':'); colon != text.npos) {
    const auto first = size_of(text.substr(0, colon)), last = size_of(text.substr(colon + 1));
    if (!first) return pass(first);
    if (!last) return pass(last);
    if (*first > *last)
      return fail(Code::invalid, "--bytes: '{}' is no range from a size to a larger one", text);
    for (uint64_t size = *first; size <= *last && size >= *first; size *= 2) sizes.push_back(size);
    return sizes;
  }
  if (text.find('-') != text.npos)
    return fail(Code::invalid, "--bytes: '{}': a range is written with a colon, as 1K:1G", text);
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const auto size = size_of(text.substr(from, comma - from));
    if (!size) return pass(size);
    sizes.push_back(*size);
    from = comma + 1;
  }
  return sizes;
}

// What the variables tell the tuner holds here too, where no option says otherwise.
void heed(const Environment& environment, ExplainOptions& options) {
  if (const std::string* rules = environment.find(nccl::kClassOptions[0].name))
    if (options.class_rules.empty()) options.class_rules = *rules;
  if (const std::string* profile = environment.find(nccl::kProfileOptions[0].name))
    if (options.profile.empty()) options.profile = *profile;
}

Status output_apart(const ExplainOptions& options) {
  auto read = files_of({options.system});
  read.push_back(readable(options.profile));
  read.push_back(readable(options.class_rules));
  return expect_apart(options.output, read);
}

Result<ClassRules> class_rules_of(const std::string& file) {
  if (file.empty()) return ClassRules::built_in();
  const auto text = read_text(readable(file));
  if (!text) return pass_unread(text);
  auto rules = ClassRules::built_in().with(*text, file);
  if (!rules) return pass_unread(rules);
  return rules;
}

// The sizes that were asked for, and so many in between each doubling that curves look like ones.
std::set<uint64_t> sizes_of_curve(const std::vector<uint64_t>& sizes) {
  constexpr double kOfDoubling = 8;
  std::set<uint64_t> all(sizes.begin(), sizes.end());
  const double first = std::log2(static_cast<double>(*all.begin()));
  const double last = std::log2(static_cast<double>(*all.rbegin()));
  for (double at = std::ceil(first * kOfDoubling); at < last * kOfDoubling; at++)
    all.insert(static_cast<uint64_t>(std::llround(std::exp2(at / kOfDoubling))));
  return all;
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

Status decide_all(const Decider& decider, const std::vector<uint64_t>& sizes, Explanation& to) {
  for (const uint64_t size : sizes_of_curve(sizes)) {
    const auto decision = decider.decide(to.collective, size);
    if (!decision)
      return fail(Code::invalid, "has nothing for {} on such a job", name(to.collective));
    if (!to.curve.empty() && !to.curve.back().chosen().same(decision->chosen()))
      to.crossovers.push_back(
          crossover_between(decider, to.collective, to.curve.back(), *decision));
    to.curve.push_back(*decision);
  }
  for (const uint64_t size : sizes)
    to.decisions.push_back(*std::ranges::find(to.curve, size, &Decision::bytes));
  return {};
}

Result<ModelledJob> job_of(const ExplainOptions& options, const System& system, uint32_t hosts,
                           const NcclRelease& release) {
  const auto job = model_job(system.kind, hosts, options.gpus_per_node, release);
  if (job && job->job.ranks < 2)
    return fail(Code::invalid, "one GPU alone has nothing to communicate");
  return job;
}

CommunicatorClass class_of(const ExplainOptions& options, const ClassRules& rules,
                           const NcclJob& job) {
  return rules.of(*word<TrafficClass>(options.traffic),
                  {job.ranks, job.nodes, job.fewest_ranks_per_node, job.most_ranks_per_node});
}

// On AMD's GPUs RCCL runs, of whose choices we know nothing.
std::string nccl_text(const ExplainOptions& options, const KnownNcclRelease& release,
                      const SystemFacts& facts) {
  if (facts.amd_gpus()) return "";
  return release.note.empty() ? options.nccl : release.from;
}

void warn_of_another_system(const Profile& profile, const System& system, Explanation& out) {
  const auto facts = facts_of(*system.kind);
  if (!profile.system || !facts || *facts == *profile.system) return;
  out.warnings.push_back(
      fmt::format("--profile {} is of another system than --system {}", out.profile, out.system));
}

void note_what_is_not_there_yet(Explanation& out) {
  if (std::ranges::any_of(out.decisions, [](const Decision& of) {
        return of.chosen().executor == Executor::crosstie;
      }))
    out.notes.push_back("the library reduces memory of hosts only, so far");
}

// A file may lack what weighs most; machines known by name are whole.
void note_what_a_file_lacks(const Machine& kind, Explanation& out) {
  if (files_of({out.system}).empty()) return;
  if (out.facts.gpu_link == GpuLink::pcie && out.facts.gpus > 1)
    out.notes.push_back("no NVLink is told of: GPUs are taken to talk over PCIe");
  if (out.facts.network == Network::none)
    out.notes.push_back("no NIC that a GPU would use is told of");
  const auto rate = std::ranges::find(kind.gaps(), GapAbout::line_rate, &Gap::about);
  if (rate != kind.gaps().end() && !rate->assumed.empty())
    out.notes.push_back(fmt::format("{}: {}", rate->device, rate->text()));
}

Result<Explanation> explain(const ExplainOptions& options, const Session& session) {
  const auto sizes = sizes_of(options.bytes);
  if (!sizes) return pass(sizes);
  const auto profile = profile_of(options.profile);
  if (!profile) return pass(profile);
  const auto rules = class_rules_of(options.class_rules);
  if (!rules) return pass(rules);
  const auto release = release_of(options.nccl);
  if (!release) return pass(release);
  const auto system = read_system(options.system, session);
  if (!system) return pass(system);
  const auto hosts = hosts_of_job(*system, options.nodes);
  if (!hosts) return pass(hosts);
  const auto job = job_of(options, *system, *hosts, release->release);
  if (!job) return pass(job);
  const CommunicatorClass of = class_of(options, *rules, job->nccl);
  const CostModel cost(profile->values, job->facts, job->job);
  const NcclModel nccl(release->release, job->nccl);
  const Decider decider({cost, nccl, job->facts, job->job, *word<Executor>(options.executor), of});
  Explanation out{*spelled<Collective>(options.collective),
                  system->name,
                  nccl_text(options, *release, job->facts),
                  options.profile,
                  *hosts,
                  job->job,
                  job->facts,
                  of};
  if (const Status decided = decide_all(decider, *sizes, out); !decided)
    return pass(decided, fmt::format("--executor {}", options.executor));
  if (!release->note.empty()) out.warnings.push_back(release->note);
  warn_of_another_system(*profile, *system, out);
  note_what_a_file_lacks(*system->kind, out);
  note_what_is_not_there_yet(out);
  return out;
}

Result<std::string> told(const Explanation& of, const ExplainOptions& options) {
  const std::string suffix = std::filesystem::path(options.output).extension();
  if (options.json || suffix == ".json") return explanation_json(of);
  if (suffix == ".svg") return explanation_plot(of, Picture::svg);
  if (suffix == ".png") return explanation_plot(of, Picture::png);
  return explanation_text(of, options.all);
}

int run(ExplainOptions options, const Session& session) {
  heed(session.environment, options);
  if (const Status apart = output_apart(options); !apart) return report(session, apart.error());
  const auto found = explain(options, session);
  if (!found) return report(session, found.error());
  if (too_unsure(found->warnings, session)) return kFindings;
  const auto text = told(*found, options);
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
  return CLI::IsMember(std::vector<std::string>(Names<Word>::all.begin(), Names<Word>::all.end()),
                       CLI::ignore_case);
}

void add_job(CLI::App& explain, ExplainOptions& options) {
  explain.add_option("collective", options.collective, "all_reduce, all_gather, …")
      ->required()
      ->check(is_a_collective());
  add_system(explain, options.system)->required();
  explain.add_option("--nodes", options.nodes, "Hosts; all of a cluster, else one")
      ->check(CLI::Range(1, 1 << 20));
  explain.add_option("--gpus-per-node", options.gpus_per_node, "GPUs in use of each host; all")
      ->check(CLI::Range(1, 1024));
  explain
      .add_option("--bytes", options.bytes,
                  "Sizes of the whole buffer: a list as 8,1K,4MiB, or a range by factors of 2")
      ->check(names_something())
      ->capture_default_str();
}

void add_choice(CLI::App& explain, ExplainOptions& options) {
  explain.add_option("--class", options.traffic, "What the communicator is for")
      ->transform(one_of<TrafficClass>())
      ->capture_default_str();
  explain
      .add_option("--class-rules", options.class_rules,
                  "A file with policies of classes; that of CROSSTIE_CLASS_RULES")
      ->check(names_something());
  explain.add_option("--executor", options.executor, "Who runs it")
      ->transform(one_of<Executor>())
      ->capture_default_str();
  explain.add_option("--nccl", options.nccl, "NCCL's release")->capture_default_str();
  explain
      .add_option("--profile", options.profile,
                  "A profile of `crosstie calibrate`, or a machine known by name; that of "
                  "CROSSTIE_PROFILE, else built in")
      ->check(names_something());
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* const explain =
      app.add_subcommand("explain", "Say which algorithm a collective should run with, and why");
  add_job(*explain, *options);
  add_choice(*explain, *options);
  CLI::Option* const output =
      explain
          ->add_option("-o,--output", options->output,
                       "Write to this file, in the format of its suffix (.txt, .json; .svg and "
                       ".png: a plot of all candidates over size); -: standard output")
          ->check(names_something())
          ->check(of_suffix({".txt", ".json", ".svg", ".png"}))
          ->capture_default_str();
  explain->add_flag("--json", options->json, "JSON instead of text");
  explain->add_flag("--all", options->all, "All candidates with their terms");
  explain->callback([options, output, &session] {
    const std::string suffix = std::filesystem::path(options->output).extension();
    if (options->json && output->count() > 0 && suffix != ".json" && !suffix.empty())
      throw CLI::ValidationError("--json",
                                 fmt::format("-o {} is of another format", options->output));
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
