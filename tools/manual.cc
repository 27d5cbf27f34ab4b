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

void print_tuner() {
  fmt::print(
      ".SH NCCL PLUGIN\nNCCL loads the tuner where\n.B NCCL_TUNER_PLUGIN=crosstie\nis set and "
      "libnccl\\-tuner\\-crosstie.so is on the library path (NCCL 2.21 and later; interfaces 2 to "
      "7). CROSSTIE_TUNER says what it does; act is the default. It has NCCL run what\n.B crosstie "
      "explain\nsays, in eight steps of size to a power of two, where it knows the system: "
      "CROSSTIE_PROFILE names one, which must be the same and readable on all ranks (dgx\\-h100, "
      "dgx\\-h100:nics=4x200G, or a file of calibrate's); else, on one "
      "node (one NVLink domain) and from NCCL 2.28 on, NCCL's table of times tells which of the "
      "machines that are built in it is: there all ranks have the same table. On several nodes "
      "times hold the latency of each rank's own NIC, so that no system is known by them. Where "
      "machines with the same times would be run differently, where an algorithm may run that is "
      "not known here, and where no system is known, NCCL's own choice stands. It stands aside "
      "where NCCL_ALGO or NCCL_PROTO is set, and where the profile cannot be read. A ring that "
      "NCCL takes for 64 times as slow as what else may run is not asked for: so it fences off "
      "sums of 8\\-bit floats. To find a system by its times takes up to half a second for the "
      "first communicator of a shape.\n"
      ".P\nWith\n.B NCCL_PROFILER_PLUGIN=crosstie\nset too, on all ranks, the tuner knows the "
      "names of communicators (NCCL 2.28 and later), and by them what each is for. "
      "libnccl\\-profiler\\-crosstie.so and libnccl\\-net\\-crosstie.so are links to the tuner's "
      "file; a copy would not know what the other heard. There is no net plugin yet: NCCL passes "
      "over NCCL_NET_PLUGIN=crosstie and uses its own transports.\n");
}

void print_classes() {
  fmt::print(
      ".SS Traffic classes\nA communicator is for tensor (tp), pipeline (pp), data (dp), context "
      "(cp) or expert parallelism (ep), for control, or unknown, by the first rule that matches. "
      "The rules that are built in know the groups of Megatron\\-LM and the dimensions of "
      "PyTorch's device meshes; PyTorch names a communicator \"description:name\" of its group. "
      "By its shape alone a communicator is unknown. Rules in the file of CROSSTIE_CLASS_RULES "
      "come first; all ranks must read the same. It is TOML:\n.P\n.nf\n"
      "schema = 1\n[[rule]]\nclass = \"tp\"\nnames = [\"MY_TP*\"]   # of the whole, or up to the "
      "first colon; *, ?\nranks = \"2\\-8\"         # or 8, \"16\\-\", \"\\-4\"; so also nodes, "
      "ranks_per_node\n[policy.dp]\nchannels = 8          # at most; 0: as many as NCCL takes\n"
      "nvls_from_ranks = 4   # NVLS may be chosen from so many in each NVLink domain on; 0: "
      "never\naim = \"compute\"       # time, latency, bandwidth, compute\nworth = 0.05         # "
      "so much "
      "slower a choice may be that serves the aim\n.fi\n"
      ".P\nA key of a policy that is not given stays as it is built in. Channels are asked for "
      "only where NCCL would take no fewer, and not where CollNet may run. A file that cannot be "
      "read is said in a line, and the built\\-in rules stand.\n");
}

void print_outcomes() {
  fmt::print(
      ".SS Log of outcomes\nWhere CROSSTIE_PROFILE_LOG names a file, the profiler (NCCL 2.27 and "
      "later) adds a line of JSON for each collective of each rank; else it asks NCCL for no "
      "events. Several processes may share a file; %h stands for the host and %p for the process. "
      "Lines are written when there are many or one is a second old, and when the communicator "
      "ends. Each has\n"
      ".TP\n.B schema\n1.\n"
      ".TP\n.B communicator, name, class\nNCCL's number of it, in hexadecimal; the name, empty if "
      "it has none; the class that the tuner took, unknown without one.\n"
      ".TP\n.B rank, ranks, nodes\nNCCL's; a node is an NVLink domain.\n"
      ".TP\n.B at_us\nWhen it was enqueued, microseconds since 1970 by the host's clock.\n"
      ".TP\n.B launch, sequence\nCollectives of one launch share a kernel, and their times "
      "overlap; "
      "the sequence counts those of the same kind.\n"
      ".TP\n.B collective, count, datatype, bytes\nall_reduce, all_gather, reduce_scatter, "
      "broadcast or reduce; elements as in NCCL's call; float32 and the like; size of the whole "
      "buffer, as a tuner is told.\n"
      ".TP\n.B algorithm, protocol, channels\nWhat ran: as nvls_tree, simple and 16.\n"
      ".TP\n.B time_us\nFrom the first channel's start to the last one's end, by the GPU's clock: "
      "so it holds the wait for slower ranks. null where NCCL did not tell it.\n");
}

void print_calibration() {
  fmt::print(
      ".SH CALIBRATION\n.B crosstie calibrate\nfits the model's parameters to logs. Of "
      "nccl\\-tests "
      "these are the text that its programs print, of all releases since 2019, and the JSON that "
      "they write with \\-J. The text may bear the marks of mpirun \\-\\-tag\\-output, srun "
      "\\-\\-label or mpiexec \\-l, and NCCL's log may be in it: from that are taken NCCL's "
      "release, "
      "its nodes, NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE and, with NCCL_DEBUG_SUBSYS=TUNING, "
      "what ran for each size. The logs of outcomes of one job's ranks are given together, those "
      "of all ranks: each collective's time is that of the rank that waited least.\n"
      ".P\nWhat a log does not tell is put before it and holds for that log alone:\n"
      ".B NCCL_ALGO=Ring NCCL_PROTO=LL ring.log\nThe program's name, which nccl\\-tests prints "
      "since "
      "June 2025, is told by\n.B collective=all_gather\nwhere it does not follow from the columns. "
      "Where NCCL was free, what ran is what its model picks on the system. Left out, and said so, "
      "are runs on hosts with different numbers of ranks, of several groups at once, of which the "
      "log contradicts itself about ranks, with \\-m, \\-G, \\-z, \\-C, \\-a other than 1 "
      "and 3, or symmetric memory, and algorithms of which there is no model. Rows and lines that "
      "cannot be read are counted in a note.\n"
      ".P\nThe profile has each parameter's value, the interval in which it is with 95 % "
      "probability, and its source, and the facts of the system's hosts. Parameters that the logs "
      "say nothing of keep what the profile has that the fit starts from. Each time counts as one "
      "that may be off by 20 %, and where there are few by less.\n");
}

void print_plugin() {
  print_tuner();
  print_classes();
  print_outcomes();
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
  print_calibration();
  print_plugin();
  fmt::print(
      ".SH EXIT STATUS\n.TP\n.B 0\nYes; clean.\n.TP\n.B 1\nFindings: a check failed, a difference, "
      "wrong data.\n.TP\n.B 2\nUsage, also of a name that is not known.\n.TP\n.B 3\nCould not "
      "look: "
      "a file cannot be read or understood, a device or peer did not answer.\n");
}

}  // namespace
}  // namespace crosstie::tools

int main(int argc, char** argv) { crosstie::tools::print_manual(argc > 1 ? argv[1] : ""); }
