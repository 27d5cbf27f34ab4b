// SPDX-License-Identifier: Apache-2.0
// crosstie topo: this host's topology, or a file's, or that of machines known by name.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "base/identity.h"
#include "command.h"
#include "driver/drivers.h"
#include "topology/format/formats.h"
#include "topology/probe/live.h"

namespace crosstie::tools {
namespace {

struct TopoOptions {
  std::string input;
  std::string output = "-";
  bool json = false;
};

Result<Topology> this_host() {
  Drivers drivers;
  drivers.verbs = open_verbs();
  drivers.nvml = open_nvml();
  auto machine = probe_live({drivers, host_name()});
  if (!machine) return pass(machine, "this host");
  return single_host(std::move(*machine));
}

bool names_a_file(const std::string& input) {
  const std::filesystem::path path(input);
  std::error_code none;
  return input.find('/') != std::string::npos || path.extension() == ".xml" ||
         path.extension() == ".toml" || std::filesystem::exists(path, none);
}

Result<Topology> look(const TopoOptions& options, bool given) {
  if (!given) return this_host();
  return names_a_file(options.input) ? read_topology_file(options.input)
                                     : read_synthetic(options.input);
}

// Whatever the reason: what was asked for could not be looked at.
int could_not_look(const Session& session, const Error& error) {
  session.log.error("{}", error.text);
  return kCouldNotLook;
}

int run_topo(const TopoOptions& options, bool given, const Session& session) {
  const auto topology = look(options, given);
  if (!topology) return could_not_look(session, topology.error());
  const bool json = options.json || options.output.ends_with(".json");
  const Status written =
      write_output(options.output, json ? json_text(*topology) : tree_text(*topology));
  return written ? kClean : could_not_look(session, written.error());
}

}  // namespace

void add_topo(CLI::App& app, Session& session) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* const topo = app.add_subcommand("topo", "Show GPUs, NICs, switches and their links");
  CLI::Option* const input =
      topo->add_option("-i,--input", options->input,
                       "A topology file (NCCL's XML, or a machine in TOML), or a known machine, "
                       "as \"2x dgx-h100\"; default: this host");
  topo->add_flag("--json", options->json, "JSON in place of a tree");
  topo->add_option("-o,--output", options->output, "Write to this file; .json implies --json");
  topo->callback([options, input, &session] {
    session.run = [options, given = input->count() > 0, &session] {
      return run_topo(*options, given, session);
    };
  });
}

}  // namespace crosstie::tools
