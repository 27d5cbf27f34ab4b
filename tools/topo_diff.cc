// SPDX-License-Identifier: Apache-2.0
// crosstie topo diff: what is not the same in two topologies.
#include <memory>

#include "topo.h"
#include "topology/diff.h"

namespace crosstie::tools {
namespace {

struct DiffOptions {
  std::string first, second;
  Report report;
};

int run(const DiffOptions& options, const Session& session) {
  const Status apart =
      expect_apart(options.report.output, files_of({options.first, options.second}));
  if (!apart) return report(session, apart.error());
  const auto first = look({options.first}, session);
  if (!first) return could_not_look(session, first.error());
  const bool given = !options.second.empty();
  const auto second =
      look(given ? std::vector{options.second} : std::vector<std::string>(), session);
  if (!second) return could_not_look(session, second.error());
  const auto differences = diff(*first, *second);
  const auto render = options.report.is_json() ? differences_json : differences_text;
  return deliver(session, options.report.output,
                 render(differences, options.first, given ? options.second : "this host"),
                 differences.empty() ? kClean : kFindings);
}

}  // namespace

void add_topo_diff(CLI::App& topo, Session& session) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* const diff =
      topo.add_subcommand("diff", "Show what differs in two topologies, what matters first");
  diff->add_option("A", options->first,
                   "A topology file or known machines, as -i of topo takes them")
      ->required()
      ->check(is_an_input());
  diff->add_option("B", options->second, "What to compare with; default: this host")
      ->check(is_an_input());
  add_report(*diff, options->report);
  diff->footer("Exit code 1 says that they differ.");
  diff->callback([options, &session] {
    read_standard_input_once({options->first, options->second});
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
