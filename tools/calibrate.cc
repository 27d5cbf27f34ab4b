// SPDX-License-Identifier: Apache-2.0
// crosstie calibrate: a profile of a system from logs of nccl-tests and of the profiler plugin, how
// true it is, and what about the runs looks wrong.
#include <algorithm>
#include <memory>

#include "calibrate_report.h"
#include "cost/logs.h"
#include "system.h"
#include "topo.h"
#include "topology/format/file.h"

namespace crosstie::tools {
namespace {

struct CalibrateOptions {
  std::vector<std::string> words;
  std::string system, nccl = "2.28.9", profile, output;
  bool json = false;
};

// A log, with what was put before it of what it does not tell.
struct Given {
  std::string file;
  ToldOfLog told;
};

// "NCCL_ALGO=Ring"; a file of such a name is told with its folder, as ./NCCL_ALGO=Ring.
bool is_told(std::string_view word) {
  const auto is_of_name = [](char c) {
    return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  const size_t equals = word.find('=');
  return equals != word.npos && std::ranges::all_of(word.substr(0, equals), is_of_name);
}

Result<std::vector<Given>> given_logs(const std::vector<std::string>& words) {
  std::vector<Given> logs(1);
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (is_told(word))
      logs.back().told.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else
      logs.back().file = word, logs.emplace_back();
  }
  if (!logs.back().told.empty())
    return fail(Code::invalid, "{} is told of no log: it goes before one", words.back());
  logs.pop_back();
  MeasuredRun any;
  for (const Given& log : logs)
    if (const Status told = tell(any, log.told); !told) return pass(told);
  return logs;
}

std::vector<std::string> files_read(const CalibrateOptions& options,
                                    const std::vector<Given>& given) {
  auto files = files_of({options.system});
  files.push_back(readable(options.profile));
  for (const Given& log : given) files.push_back(readable(log.file));
  return files;
}

Result<std::vector<MeasuredRun>> read_logs(const std::vector<Given>& given) {
  Logs logs;
  for (const auto& [file, told] : given) {
    const auto text = read_text(readable(file));
    if (!text) return pass(text);
    const std::string name = file == kStandard ? "standard input" : file;
    if (const Status added = logs.add(*text, name, told); !added) return pass(added, name);
  }
  return logs.runs();
}

// Where what goes: the profile to -o, the report as JSON to standard output, as text to stderr.
int deliver_all(const CalibrateOptions& options, const Session& session, const Calibration& of,
                const Profile& start) {
  const std::string report =
      options.json ? calibration_json(of, start) : calibration_text(of, start);
  if (options.json)
    print(report);
  else
    std::fwrite(report.data(), 1, report.size(), stderr);
  if (of.points == 0) {
    session.log.error("there is nothing to fit to: no profile is written");
    return kCouldNotLook;
  }
  const int code = is_clean(of.findings) ? kClean : kFindings;
  const std::string output = options.output.empty() && !options.json ? "-" : options.output;
  if (output.empty()) return code;
  return deliver(session, output,
                 "# Written by crosstie calibrate.\n" + write_profile(of.fit.profile), code);
}

int run(const CalibrateOptions& options, const Session& session) {
  if (options.json && options.output == kStandard)
    return report(session, {Code::invalid, "--json goes to standard output; give -o a file"});
  const auto given = given_logs(options.words);
  if (!given) return report(session, given.error());
  const Status apart = expect_apart(options.output, files_read(options, *given));
  if (!apart) return report(session, apart.error());
  const auto start = profile_of(options.profile);
  if (!start) return report(session, start.error());
  const auto release = release_of(options.nccl);
  if (!release) return report(session, release.error());
  if (!release->note.empty() && too_unsure({release->note}, session)) return kFindings;
  const auto system = read_system(options.system, session);
  if (!system) return report(session, system.error());
  auto runs = read_logs(*given);
  if (!runs && runs.error().code == Code::unsupported)
    return report(session, {Code::invalid, runs.error().text});
  if (!runs) return could_not_look(session, runs.error());
  const auto fitted =
      calibrate(system->kind, std::move(*runs), *start, *parse_nccl_version(options.nccl));
  if (!fitted) return report(session, fitted.error());
  return deliver_all(options, session, *fitted, *start);
}

}  // namespace

void add_calibrate(CLI::App& app, Session& session) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* const calibrate = app.add_subcommand(
      "calibrate", "Fit a profile to what nccl-tests or the profiler plugin measured on a system");
  calibrate
      ->add_option("log", options->words,
                   "Logs: what programs of nccl-tests print, what they write with -J, and what the "
                   "plugin writes (CROSSTIE_PROFILE_LOG); -: standard input. NCCL_ALGO=…, "
                   "NCCL_PROTO=…, NCCL_NVLS_ENABLE=… and collective=… before a log say what it "
                   "does not tell by itself")
      ->required()
      ->check(names_something());
  add_system(*calibrate, options->system)->required();
  calibrate->add_option("--nccl", options->nccl, "NCCL's release, where a log does not tell it")
      ->capture_default_str();
  calibrate->add_option("--profile", options->profile, "Where the fit starts: a profile; built in")
      ->check(names_something());
  calibrate
      ->add_option("-o,--output", options->output,
                   "Where the profile goes; -, standard output, if not given, and nowhere with "
                   "--json")
      ->check(names_something())
      ->check(of_suffix({".toml"}));
  calibrate->add_flag("--json", options->json,
                      "The report as JSON on standard output, in place of text on stderr");
  calibrate->footer("Exit code 1 says that there are errors or warnings of unhealthy runs.");
  calibrate->callback([options, &session] {
    read_standard_input_once(options->words);
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
