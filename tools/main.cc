// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "command.h"
#include "config.h"

namespace crosstie::tools {
namespace {

// A process may be started with its standard streams closed; what it opens must not take their
// place, or a message would go into a connection. For reading: what is written there is an error.
void keep_standard_streams() {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0 && fd <= STDERR_FILENO;) fd = dup(fd);
}

// CLI11's own text on one line, so that logs stay greppable.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const Session& session) {
  if (error.get_exit_code() == 0)
    return flushed(app.exit(error) == 0 ? kClean : kUsage, session.log);  // --help, --version
  std::string text = error.what();
  for (char& c : text)
    if (c == '\n') c = ' ';
  session.log.error("{}; see 'crosstie --help'", text);
  return kUsage;
}

int run(int argc, char** argv) {
  Session session{Environment::of_process(), stderr_log(Level::warn), {}};
  CLI::App app{"Topology-aware communication for GPU clusters", "crosstie"};
  app.set_version_flag("--version", "crosstie " PACKAGE_VERSION);
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
