// SPDX-License-Identifier: Apache-2.0
// crosstie topo check: what is suspicious about a topology.
#include <memory>

#include "topo.h"
#include "topology/check.h"

namespace crosstie::tools {
namespace {

struct CheckOptions {
  std::vector<std::string> inputs;
  Report report;
};

int run(const CheckOptions& options, const Session& session) {
  const Status apart = expect_apart(options.report.output, files_of(options.inputs));
  if (!apart) return report(session, apart.error());
  const auto topology = look(options.inputs, session);
  if (!topology) return could_not_look(session, topology.error());
  const auto findings = check(*topology);
  return deliver(session, options.report.output,
                 options.report.is_json() ? findings_json(findings, "crosstie-topology-check")
                                          : findings_text(findings),
                 is_clean(findings) ? kClean : kFindings);
}

}  // namespace

void add_topo_check(CLI::App& topo, Session& session) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* const check = topo.add_subcommand(
      "check", "Look for what is suspicious: lost lanes, NVLinks and carriers, what is not known");
  add_input(*check, options->inputs);
  add_report(*check, options->report);
  check->footer("Exit code 1 says that there are errors or warnings; notes do not count.");
  check->callback([options, &session] {
    read_standard_input_once(options->inputs);
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
