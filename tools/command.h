// SPDX-License-Identifier: Apache-2.0
// What the subcommands share. Each file of this folder adds one subcommand; main() runs the one
// that was named. Data goes to stdout, all else to stderr.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

#include "base/log.h"
#include "base/options.h"
#include "base/result.h"

namespace crosstie::tools {

enum Exit : int {
  kClean = 0,
  kFindings = 1,  // a check failed, a difference, wrong data
  kUsage = 2,
  kCouldNotLook = 3,  // a file, device or peer that should have answered did not
  kReaderLeft = 141,  // 128 + SIGPIPE, as shells tell of a tool whose reader left
};

struct Session {
  Environment environment;
  Log log;
  std::function<int()> run;  // set by the subcommand that was named
};

// One line on stderr; returns the exit code that suits the error.
int report(const Session& session, const Error& error);

// Of a file: whatever is wrong with it, what was asked for could not be looked at.
template <class T>
tl::unexpected<Error> pass_unread(const Result<T>& failed) {
  Error error = failed.error();
  error.code = Code::io;
  return tl::unexpected<Error>(std::move(error));
}

// To standard output; that it got there is checked once, at the end.
void print(std::string_view text);
// Data that did not get out is no success: the code to end with. Where the reader left, as `head`
// does, nothing is said.
int flushed(int code, const Log& log);
// To a file, or standard output where it is "-". A regular file is replaced as a whole.
Status write_output(const std::string& to, std::string_view text);

// Fails where the output is one of the files that are read, by whatever name: writing it would
// destroy what it is made from.
Status expect_apart(const std::string& output, const std::vector<std::string>& read);

// Each adds one subcommand.
void add_topo(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_calibrate(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_config(CLI::App& app, Session& session);
// All of them, and --version.
void add_all(CLI::App& app, Session& session);

}  // namespace crosstie::tools
