// SPDX-License-Identifier: Apache-2.0
// Prints crosstie(1) in man(7): the options from the parser's own table, the variables from their
// rows, so that nothing is described twice. Run at build time.
#include <fmt/format.h>

#include <string>

#include "command.h"
#include "config.h"
#include "settings.h"

namespace crosstie::tools {
namespace {

// A hyphen in running text is a hyphen to man; in what users type it must stay a minus.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c;
  }
  return out;
}

void print_option(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  fmt::print(".TP\n.B {}{}\n{}.\n", escaped(option.get_name(false, true)),
             option.get_type_size() == 0 || value.empty() ? "" : " " + escaped(value),
             escaped(option.get_description()));
}

void print_command(const CLI::App& app, const std::string& path) {
  fmt::print(".SS {}\n{}.\n", escaped(path), escaped(app.get_description()));
  for (const CLI::Option* option : app.get_options()) print_option(*option);
  if (!app.get_footer().empty()) fmt::print(".P\n{}\n", escaped(app.get_footer()));
  for (const CLI::App* sub : app.get_subcommands({}))
    print_command(*sub, path + " " + sub->get_name());
}

void print_variables() {
  fmt::print(".SH ENVIRONMENT\n");
  for (const OptionRow* row : all_options()) {
    fmt::print(".TP\n.B {}\n{}. Takes {}", row->name, escaped(row->doc), escaped(row->syntax()));
    if (!row->fallback.empty()) fmt::print("; {} if unset", escaped(row->fallback));
    fmt::print(".{}\n", row->alias.empty() ? "" : fmt::format(" {} is honoured too.", row->alias));
  }
  fmt::print(
      ".P\nRank, number of ranks and rank 0's address are taken, where these are unset, from "
      "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (torchrun), OMPI_COMM_WORLD_RANK and _SIZE "
      "(Open MPI), PMI_RANK and PMI_SIZE (MPICH), SLURM_PROCID, SLURM_NTASKS and "
      "SLURM_STEP_NODELIST (srun); MASTER_ADDR serves every launcher.\n");
}

void print_manual() {
  Session session;
  CLI::App app;
  add_all(app, session);
  fmt::print(
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".TH CROSSTIE 1 \"\" \"crosstie {}\" \"User Commands\"\n"
      ".SH NAME\ncrosstie \\- topology\\-aware communication for GPU clusters\n"
      ".SH SYNOPSIS\n.B crosstie\n.I command\n.RI [ options ]\n.SH COMMANDS\n",
      PACKAGE_VERSION);
  for (const CLI::App* sub : app.get_subcommands({}))
    print_command(*sub, "crosstie " + sub->get_name());
  print_variables();
  fmt::print(
      ".SH EXIT STATUS\n.TP\n.B 0\nYes; clean.\n.TP\n.B 1\nFindings: a check failed, a difference, "
      "wrong data.\n.TP\n.B 2\nUsage.\n.TP\n.B 3\nCould not look: a file, device or peer did not "
      "answer.\n");
}

}  // namespace
}  // namespace crosstie::tools

int main() { crosstie::tools::print_manual(); }
