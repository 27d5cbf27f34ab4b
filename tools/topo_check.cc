// SPDX-License-Identifier: Apache-2.0
// crosstie topo check: what is suspicious about a topology.
#include <memory>

#include "topo.h"
#include "topology/check.h"

namespace crosstie::tools {
namespace {

struct CheckOptions {
  std::vector<std::string> inputs;
  std::string output = "-";
  bool json = false;
};

int run(const CheckOptions& options, const Session& session) {
  const auto topology = look_for_paths(options.inputs, session);
  if (!topology) return could_not_look(session, topology.error());
  const auto findings = check(*topology);
  const Status written =
      write_output(options.output, options.json || options.output.ends_with(".json")
                                       ? findings_json(findings, "crosstie-topology-check")
                                       : findings_text(findings));
  if (!written) return could_not_look(session, written.error());
  return is_clean(findings) ? kClean : kFindings;
}

}  // namespace

void add_topo_check(CLI::App& topo, Session& session) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* const check = topo.add_subcommand(
      "check", "Look for what is suspicious: lost lanes, NVLinks and carriers, what is not known");
  add_input(*check, options->inputs);
  check->add_option("-o,--output", options->output, "Write to this file; .json implies --json");
  check->add_flag("--json", options->json, "JSON in place of text");
  check->footer("Exit code 1 says that there are errors or warnings; notes do not count.");
  check->callback([options, &session] {
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
