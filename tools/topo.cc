// SPDX-License-Identifier: Apache-2.0
// crosstie topo: this host's topology, or a file's, or that of machines known by name, as text,
// data or a picture.
#include "topo.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <tuple>

#include "this_host.h"
#include "topology/cluster.h"
#include "topology/format/drawing.h"
#include "topology/format/formats.h"
#include "topology/path.h"
#include "topology/variation.h"

namespace crosstie::tools {
namespace {

using Text = Result<std::string>;

Text nccl_xml(const Topology& topology, const Log& log) {
  auto written = write_nccl_xml(topology);
  if (!written) return pass(written);
  if (!written->left_out.empty()) log.warn("{}", written->left_out);
  return std::move(written->text);
}

struct Format {
  std::string_view name;
  std::string_view suffix;
  Text (*text)(const Topology&, const Log&);
  bool any_size = false;  // does without paths where a host is too large for them
};
constexpr std::array kFormats = {
    Format{"tree", ".txt", [](const Topology& t, const Log&) -> Text { return tree_text(t); },
           true},
    Format{"matrix", "", [](const Topology& t, const Log&) -> Text { return matrix_text(t); }},
    Format{"paths", "", [](const Topology& t, const Log&) -> Text { return paths_text(t); }},
    Format{"json", ".json", [](const Topology& t, const Log&) -> Text { return json_text(t); },
           true},
    Format{"nccl-xml", ".xml", nccl_xml, true},
    Format{"dot", ".dot", [](const Topology& t, const Log&) -> Text { return dot_text(t); }},
    Format{"svg", ".svg", [](const Topology& t, const Log&) { return drawing(t, Picture::svg); }},
    Format{"png", ".png", [](const Topology& t, const Log&) { return drawing(t, Picture::png); }},
};

struct TopoOptions {
  std::vector<std::string> inputs;
  std::string output = "-";
  std::string format;
  bool matrix = false;
  bool json = false;
};

// A file may have a colon in its name.
Varied parts_of(const std::string& input) {
  std::error_code none;
  return std::filesystem::exists(input, none) ? Varied{input, {}} : split_variation(input);
}

// A file named like a known machine needs its folder: what a name means should not depend on what
// lies around.
bool names_a_file(const std::string& input) {
  const std::string_view name = parts_of(input).name;
  const std::filesystem::path path(name);
  if (name.find('/') != name.npos || path.extension() == ".xml" || path.extension() == ".toml" ||
      path.extension() == ".json")
    return true;
  const auto wish = parse_wish(name);
  std::error_code none;
  return !(wish && is_known_machine(wish->machine)) && std::filesystem::exists(path, none);
}

bool is_made_up(const std::string& input) {
  return parts_of(input).name != kStandard && !names_a_file(input);
}

Result<Topology> look_at(const std::string& input) {
  const auto [name, changes] = parts_of(input);
  auto topology =
      is_made_up(input) ? read_synthetic(name) : read_topology_file(readable(std::string(name)));
  if (!topology || changes.empty()) return topology;
  const auto variation = parse_variation(changes);
  if (!variation) return pass(variation, name);
  auto varied = vary(*topology, *variation);
  if (!varied) return pass(varied, name);
  return varied;
}

// Files may tell of one host twice, and it becomes one. Hosts of a known machine are made up: of
// one name with another input's they would be taken for its, and their NVLink domains too.
class Names {
 public:
  Status add(const std::string& input, const Topology& part) {
    std::set<std::string_view> hosts, domains;
    for (const Host& host : part.hosts) {
      hosts.insert(host.name);
      if (!host.domain.empty()) domains.insert(host.domain);
    }
    if (const Status own = add(input, hosts, input_of_host_); !own) return own;
    return add(input, domains, input_of_domain_);
  }

 private:
  using Inputs = std::map<std::string, std::string>;
  static Status add(const std::string& input, const std::set<std::string_view>& names,
                    Inputs& inputs) {
    for (const std::string_view name : names) {
      const auto [known, is_new] = inputs.emplace(name, input);
      if (!is_new && (is_made_up(input) || is_made_up(known->second)))
        return fail(Code::invalid,
                    "--input: '{}' and '{}' both name {}; tell known machines of a kind in one "
                    "input, as \"5x dgx-h100\", or name hosts in a cluster file",
                    known->second, input, name);
    }
    return {};
  }

  Inputs input_of_host_, input_of_domain_;
};

Result<const Format*> format_named(const std::string& name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  if (found != kFormats.end()) return &*found;
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return fail(Code::invalid, "--format {}: there are {}", name, fmt::join(names, ", "));
}

// That of the file's suffix; the tree where it has none.
Result<const Format*> format_of_file(const std::string& file) {
  const std::string suffix = std::filesystem::path(file).extension();
  if (suffix.empty()) return &kFormats[0];
  const auto found = std::ranges::find(kFormats, suffix, &Format::suffix);
  if (found != kFormats.end()) return &*found;
  std::vector<std::string_view> suffixes;
  for (const Format& format : kFormats)
    if (!format.suffix.empty()) suffixes.push_back(format.suffix);
  return fail(Code::invalid, "-o {}: no format has that suffix; there are {} (or give --format)",
              file, fmt::join(suffixes, ", "));
}

// A name that says another format than is written would mislead. Text of any form goes to .txt.
Status suffix_suits(const Format& format, const std::string& file) {
  const std::string suffix = std::filesystem::path(file).extension();
  const std::string_view own = format.suffix.empty() ? kFormats[0].suffix : format.suffix;
  if (suffix == own || std::ranges::find(kFormats, suffix, &Format::suffix) == kFormats.end() ||
      suffix.empty())
    return {};
  return fail(Code::invalid, "-o {}: is to hold {}; name it *{}", file, format.name, own);
}

Result<const Format*> chosen_format(const TopoOptions& options) {
  if (options.format.empty() && !options.matrix && !options.json)
    return format_of_file(options.output);
  const auto format = format_named(options.matrix ? "matrix"
                                   : options.json ? "json"
                                                  : options.format);
  if (!format) return format;
  if (const Status suits = suffix_suits(**format, options.output); !suits) return pass(suits);
  return format;
}

// Data that is too large for the memory there is: taking it apart again, as an exception would, can
// need more of it.
[[noreturn]] void say_out_of_memory() {
  constexpr std::string_view kText = "crosstie: error: out of memory\n";
  std::ignore = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(kCouldNotLook);
}

// An option before the verb is topo's own, which no verb would heed.
void refuse_own_options(const CLI::App& topo, const CLI::App& verb) {
  for (const CLI::Option* option : topo.get_options())
    if (option->count() > 0)
      throw CLI::ValidationError(option->get_name(), "goes after " + verb.get_name());
}

int run_topo(const TopoOptions& options, const Session& session) {
  const auto format = chosen_format(options);
  if (!format) return report(session, format.error());
  const Status apart = expect_apart(options.output, files_of(options.inputs));
  if (!apart) return report(session, apart.error());
  const auto topology = (*format)->any_size ? look_at_any_size(options.inputs, session)
                                            : look(options.inputs, session);
  if (!topology) return could_not_look(session, topology.error());
  const auto text = (*format)->text(*topology, session.log);
  if (!text) return could_not_look(session, text.error());
  return deliver(session, options.output, *text, kClean);
}

}  // namespace

Result<Topology> look_at_any_size(const std::vector<std::string>& inputs, const Session& session) {
  if (inputs.empty()) return this_host(session.environment, session.log);
  std::vector<Topology> parts;
  Names names;
  for (const std::string& input : inputs) {
    auto part = look_at(input);
    if (!part || inputs.size() == 1) return part;
    if (const Status apart = names.add(input, *part); !apart) return pass(apart);
    parts.push_back(std::move(*part));
  }
  return merge(std::move(parts));
}

Result<Topology> look(const std::vector<std::string>& inputs, const Session& session) {
  auto topology = look_at_any_size(inputs, session);
  if (!topology) return topology;
  for (const Host& host : topology->hosts)
    if (const Status fits = paths_fit(*host.machine); !fits) return pass(fits);
  return topology;
}

CLI::Validator names_something() {
  const auto check = [](const std::string& text) {
    return text.empty() ? "names nothing; leave it out" : "";
  };
  return CLI::Validator(check, "", "");
}

CLI::Validator is_an_input() {
  const auto check = [](const std::string& text) {
    if (text.empty()) return std::string("names nothing");
    const auto [name, changes] = parts_of(text);
    if (!changes.empty())
      if (const auto variation = parse_variation(changes); !variation)
        return fmt::format("{}: {}", name, variation.error().text);
    if (!is_made_up(text)) return std::string();
    const auto wish = parse_wish(name);
    if (!wish) return wish.error().text;
    return is_known_machine(wish->machine) ? "" : read_synthetic(name).error().text;
  };
  return CLI::Validator(check, "", "");
}

std::string readable(const std::string& file) { return file == kStandard ? "/dev/stdin" : file; }

std::vector<std::string> files_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs)
    if (!is_made_up(input)) files.push_back(readable(std::string(parts_of(input).name)));
  return files;
}

void read_standard_input_once(const std::vector<std::string>& files) {
  if (std::ranges::count(files, kStandard) > 1)
    throw CLI::ValidationError("-", "standard input can be read once only");
}

void add_input(CLI::App& verb, std::vector<std::string>& inputs, std::string_view several) {
  verb.add_option(
          "-i,--input", inputs,
          fmt::format("A topology file (NCCL's or hwloc's XML, a machine or cluster in TOML, our "
                      "JSON; -: standard input), or known machines, as \"2x dgx-h100\" (a file of "
                      "such a name: ./dgx-h100); {}; default: this host",
                      several))
      ->check(names_something())
      ->check(is_an_input());
}

int could_not_look(const Session& session, const Error& error) {
  session.log.error("{}", error.text);
  return kCouldNotLook;
}

int deliver(const Session& session, const std::string& to, std::string_view text, int code) {
  const Status written = write_output(to, text);
  return written ? code : could_not_look(session, written.error());
}

CLI::Validator of_suffix(std::vector<std::string_view> suffixes) {
  const auto check = [suffixes = std::move(suffixes)](const std::string& file) {
    const std::string suffix = std::filesystem::path(file).extension();
    if (suffix.empty() || std::ranges::find(suffixes, suffix) != suffixes.end())
      return std::string();
    return fmt::format("{}: no format here has that suffix; there are {}", file,
                       fmt::join(suffixes, ", "));
  };
  return CLI::Validator(check, "", "");
}

void add_report(CLI::App& verb, Report& report) {
  verb.add_option("-o,--output", report.output, "Write to this file; .json implies --json")
      ->check(names_something())
      ->check(of_suffix({".txt", ".json"}));
  verb.add_flag("--json", report.json, "JSON in place of text");
}

void add_topo(CLI::App& app, Session& session) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* const topo = app.add_subcommand("topo", "Show GPUs, NICs, switches and their links");
  add_input(*topo, options->inputs);
  topo->add_option(
          "-o,--output", options->output,
          "Write to this file, in the format of its suffix (.txt, .json, .xml, .dot, .svg, .png); "
          "default: -, standard output")
      ->check(names_something());
  CLI::Option* const format =
      topo->add_option("-f,--format", options->format,
                       "tree (the default), matrix, paths, json, nccl-xml, dot, "
                       "svg or png")
          ->check(names_something());
  CLI::Option* const matrix =
      topo->add_flag("--matrix", options->matrix,
                     "--format matrix: what joins each to each, as nvidia-smi topo -m");
  topo->add_flag("--json", options->json, "--format json")->excludes(format)->excludes(matrix);
  matrix->excludes(format);
  add_topo_check(*topo, session);
  add_topo_diff(*topo, session);
  add_topo_make_xml(*topo, session);
  topo->callback([topo, options, &session] {
    std::set_new_handler(say_out_of_memory);
    const auto verbs = topo->get_subcommands();
    if (!verbs.empty()) return refuse_own_options(*topo, *verbs.front());
    read_standard_input_once(options->inputs);
    session.run = [options, &session] { return run_topo(*options, session); };
  });
}

}  // namespace crosstie::tools
