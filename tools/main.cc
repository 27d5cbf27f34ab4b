// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/edit_distance.h"
#include "command.h"
#include "topology/format/formats.h"

namespace crosstie::tools {
namespace {

// A process may be started with its standard streams closed; what it opens must not take their
// place, or a message would go into a connection. For reading: what is written there is an error.
void keep_standard_streams() {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0 && fd <= STDERR_FILENO;) fd = dup(fd);
}

// The last subcommand that was named, with its whole path.
struct Named {
  const CLI::App* command;
  std::string path;
};
Named last_named(const CLI::App& app) {
  Named named{&app, app.get_name()};
  while (!named.command->get_subcommands().empty()) {
    named.command = named.command->get_subcommands().front();
    named.path += " " + named.command->get_name();
  }
  return named;
}

// What a word that the command does not know may have meant; empty where nothing is near.
std::string meant(const CLI::App& command, std::string_view word) {
  if (is_known_machine(word) && command.get_option_no_throw("--input") != nullptr)
    return fmt::format("-i {}", word);
  std::vector<std::string> known;
  for (const CLI::App* sub : command.get_subcommands({})) known.push_back(sub->get_name());
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  constexpr size_t kMostWrongLetters = 2;
  return std::string(nearest(word, known, kMostWrongLetters));
}

// CLI11's own text on one line, so that logs stay greppable.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const Session& session) {
  if (error.get_exit_code() == 0)
    return flushed(app.exit(error) == 0 ? kClean : kUsage, session.log);  // --help, --version
  std::string text = error.what();
  for (char& c : text)
    if (c == '\n') c = ' ';
  const auto [command, path] = last_named(app);
  const std::vector<std::string> unknown = command->remaining();
  const std::string hint = unknown.empty() ? "" : meant(*command, unknown.front());
  session.log.error("{}{}; see '{} --help'", text,
                    hint.empty() ? "" : fmt::format(" (did you mean {}?)", hint), path);
  return kUsage;
}

int run(int argc, char** argv) {
  Session session{Environment::of_process(), stderr_log(Level::warn), {}};
  CLI::App app{"Topology-aware communication for GPU clusters", "crosstie"};
  session.run = [&session] {
    session.log.error("a command is required; see 'crosstie --help'");
    return kUsage;
  };
  app.footer("Exit codes: 0 clean, 1 findings, 2 usage, 3 could not look.");
  add_all(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, session);
  }
  return flushed(session.run(), session.log);
}

}  // namespace

}  // namespace crosstie::tools

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_DFL);  // whose reader leaves ends quietly, whatever the parent ignores
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like another
  crosstie::tools::keep_standard_streams();
  try {
    return crosstie::tools::run(argc, argv);
  } catch (const std::exception& error) {  // out of memory, at worst
    crosstie::stderr_log(crosstie::Level::error).error("internal error: {}", error.what());
    return crosstie::tools::kCouldNotLook;
  }
}
