// SPDX-License-Identifier: Apache-2.0
// What the verbs of `crosstie topo` share.
#pragma once
#include "command.h"
#include "topology/topology.h"

namespace crosstie::tools {

// This host where there is no input; else a file or machines known by name each, and of several a
// cluster. Fails where one is too large for its paths to be found.
Result<Topology> look(const std::vector<std::string>& inputs, const Session& session);
// The same, for what finds no paths.
Result<Topology> look_at_any_size(const std::vector<std::string>& inputs, const Session& session);
// The files that options name are for reading, where "-" is standard input. Throws as CLI11 does.
inline constexpr std::string_view kStandard = "-";
std::string readable(const std::string& file);
// Of the inputs of look() those that are files.
std::vector<std::string> files_of(const std::vector<std::string>& inputs);
void read_standard_input_once(const std::vector<std::string>& files);

// The option for it, -i, --input; and what several are.
void add_input(CLI::App& verb, std::vector<std::string>& inputs,
               std::string_view several = "several become one cluster");

// Whatever the reason: what was asked for could not be looked at.
int could_not_look(const Session& session, const Error& error);

// Refuses a file whose suffix says another format than those of these suffixes.
CLI::Validator of_suffix(std::vector<std::string_view> suffixes);
// For what look() takes.
CLI::Validator is_an_input();
// For an option that may be left out, but not be empty: as an unset variable of the shell is.
CLI::Validator names_something();

// Writes the text there. Returns the code, or that it could not be written.
int deliver(const Session& session, const std::string& to, std::string_view text, int code);

// Where a verb's findings go, as text or JSON, and the options for it: -o, --output, --json.
struct Report {
  std::string output = "-";
  bool json = false;
  bool is_json() const { return json || output.ends_with(".json"); }
};
void add_report(CLI::App& verb, Report& report);

// Each adds a verb of its own.
void add_topo_check(CLI::App& topo, Session& session);
void add_topo_diff(CLI::App& topo, Session& session);
void add_topo_make_xml(CLI::App& topo, Session& session);

}  // namespace crosstie::tools
