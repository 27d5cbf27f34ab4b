// SPDX-License-Identifier: Apache-2.0
// Prints crosstie(1) in man(7): the options from the parser's own table, the variables from their
// rows, so that nothing is described twice. Run at build time, with the date of the version.
#include <fmt/format.h>

#include <string>

#include "command.h"
#include "config.h"
#include "runtime/job.h"
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
  const std::string fallback = option.get_default_str();
  fmt::print(".TP\n.B {}{}\n{}{}.\n", escaped(option.get_name(false, true)),
             option.get_type_size() == 0 || value.empty() ? "" : " " + escaped(value),
             escaped(option.get_description()),
             fallback.empty() ? "" : fmt::format("; {} if not given", escaped(fallback)));
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
}

void print_place() {
  fmt::print(
      ".SH PLACE IN THE JOB\nRank and number of ranks are those of the first pair that is set:\n"
      ".IP 1.\nCROSSTIE_RANK and CROSSTIE_RANKS;\n"
      ".IP 2.\nRANK and WORLD_SIZE (torchrun);\n"
      ".IP 3.\nOMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE (Open MPI);\n"
      ".IP 4.\nPMI_RANK and PMI_SIZE (MPICH);\n"
      ".IP 5.\nSLURM_PROCID and SLURM_NTASKS (srun).\n"
      ".P\nWith none it is a job of one rank.\n"
      ".P\nRank 0's host is that of CROSSTIE_ADDRESS, else MASTER_ADDR whatever the launcher, else "
      "the first of SLURM_STEP_NODELIST, else this host where the launcher says that all ranks are "
      "on it. The port is that of CROSSTIE_ADDRESS, else MASTER_PORT (one more where torchrun's "
      "agent keeps it), else one from 20000 to 31999 that follows from the launcher's name for the "
      "job; ranks of which no launcher names the job must be given one. Rank 0 listens at the "
      "first of {} ports from there on that is free, so firewalls must let all of them pass.\n",
      Job::kPorts);
}

void print_files() {
  fmt::print(
      ".SH FILES\nThe keys of cluster files and of overlays for virtual machines, and those of the "
      "JSON, are in README.md, in the documentation's folder.\n");
}

void print_plugin() {
  fmt::print(
      ".SH NCCL TUNER PLUGIN\nNCCL 2.28 and later load the tuner where\n"
      ".B NCCL_TUNER_PLUGIN=crosstie\nis set and libnccl\\-tuner\\-crosstie.so is on the library "
      "path. CROSSTIE_TUNER says what it does; act is the default. It counts choices within 1/16 "
      "of the least time of NCCL's own estimates as tied, changes NCCL's choice among those only, "
      "and stands aside where NCCL_ALGO or NCCL_PROTO is set.\n");
}

void print_manual(std::string_view date) {
  Session session;
  CLI::App app;
  add_all(app, session);
  fmt::print(
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".TH CROSSTIE 1 {} \"crosstie {}\" \"User Commands\"\n"
      ".SH NAME\ncrosstie \\- topology\\-aware communication for GPU clusters\n"
      ".SH SYNOPSIS\n.B crosstie\n.I command\n.RI [ options ]\n.SH OPTIONS\n",
      escaped(date), PACKAGE_VERSION);
  for (const CLI::Option* option : app.get_options()) print_option(*option);
  fmt::print(".SH COMMANDS\n");
  for (const CLI::App* sub : app.get_subcommands({}))
    print_command(*sub, "crosstie " + sub->get_name());
  print_variables();
  print_files();
  print_place();
  print_plugin();
  fmt::print(
      ".SH EXIT STATUS\n.TP\n.B 0\nYes; clean.\n.TP\n.B 1\nFindings: a check failed, a difference, "
      "wrong data.\n.TP\n.B 2\nUsage.\n.TP\n.B 3\nCould not look: a file, device or peer did not "
      "answer.\n");
}

}  // namespace
}  // namespace crosstie::tools

int main(int argc, char** argv) { crosstie::tools::print_manual(argc > 1 ? argv[1] : ""); }
