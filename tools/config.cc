// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "command.h"
#include "driver/drivers.h"
#include "settings.h"

namespace crosstie::tools {
namespace {

constexpr int kSchemaVersion = 1;

std::string alias_note(const Setting& setting) {
  const OptionRow& row = *setting.row;
  if (row.alias.empty()) return {};
  const bool gives = setting.given.name == row.alias;
  return fmt::format("; also {}{}", row.alias, gives ? ", which is in effect" : "");
}

// A block a variable, which a shell can read back: what is not set, or not right, is commented out.
std::string block(const Setting& setting, bool set) {
  const OptionRow& row = *setting.row;
  const bool live = set && setting.valid;
  return fmt::format(
      "# {}\n# syntax: {}{}\n{}{}{}={}\n\n", row.doc, row.syntax(), alias_note(setting),
      setting.valid ? "" : fmt::format("# wrong: {}\n", printable(setting.valid.error().text)),
      live ? "" : "# ", row.name, shell_quoted(setting.given.value));
}

std::string text_of(const std::vector<Setting>& settings, const Environment& environment) {
  std::string out;
  for (const Setting& setting : settings)
    out += block(setting, environment.find(setting.given.name));
  return out;
}

std::string json_of(const std::vector<Setting>& settings, const Environment& environment) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [row, given, valid] : settings)
    list.push_back({{"name", row->name},
                    {"alias", row->alias},
                    {"value", given.value},
                    {"variable", given.name},
                    {"default", row->fallback},
                    {"set", environment.find(given.name) != nullptr},
                    {"error", valid ? nlohmann::json() : nlohmann::json(valid.error().text)},
                    {"syntax", row->syntax()},
                    {"doc", row->doc}});
  const nlohmann::json document = {{"schema", kSchemaVersion}, {"variables", list}};
  return document.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

template <class Functions>
void print_library(const char* name, const Result<Driver<Functions>>& driver) {
  const std::string found = driver ? driver->version : "no: " + driver.error().text;
  print(fmt::format("{:<10} {}\n", name, printable(found)));
}

// What would be opened at run time, here and now.
int print_libraries() {
  const Drivers drivers = open_drivers();
  print_library("libibverbs", drivers.verbs);
  print_library("NVML", drivers.nvml);
  print_library("CUDA", drivers.cuda);
  print_library("NCCL", drivers.nccl);
  return kClean;
}

int run(bool json, const Session& session) {
  const auto settings = all_settings(session.environment);
  const auto render = json ? json_of : text_of;
  print(render(settings, session.environment));
  int code = kClean;
  for (const Setting& setting : settings) {
    if (setting.valid) continue;
    session.log.error("{}", setting.valid.error().text);
    code = kFindings;
  }
  for (const Unknown& unknown : unknown_variables(all_options(), session.environment)) {
    session.log.warn("{}", to_text(unknown));
    code = kFindings;
  }
  return code;
}

}  // namespace

void add_config(CLI::App& app, Session& session) {
  CLI::App* config =
      app.add_subcommand("config", "Show every variable, its meaning and its value in effect");
  struct Asked {
    bool json = false, libraries = false;
  };
  auto asked = std::make_shared<Asked>();
  auto* json = config->add_flag("--json", asked->json, "Print JSON, schema 1");
  config
      ->add_flag("--libraries", asked->libraries, "Show the libraries that are opened at run time")
      ->excludes(json);
  config->callback([asked, &session] {
    session.run = [asked, &session] {
      return asked->libraries ? print_libraries() : run(asked->json, session);
    };
  });
}

}  // namespace crosstie::tools
