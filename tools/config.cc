// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "driver/drivers.h"
#include "settings.h"

namespace crosstie::tools {
namespace {

constexpr int kSchemaVersion = 1;

bool is_set(const OptionRow& row, const Environment& environment) {
  return environment.find(row.name) || (!row.alias.empty() && environment.find(row.alias));
}

// A block a variable, which a shell can read back: what is not set is commented out.
void print_text(const std::vector<const OptionRow*>& rows, const Environment& environment) {
  for (const OptionRow* row : rows) {
    const bool set = is_set(*row, environment);
    fmt::print("# {}\n# syntax: {}{}{}\n{}{}={}\n\n", row->doc, row->syntax(),
               row->alias.empty() ? "" : "; also ", row->alias, set ? "" : "# ", row->name,
               value_in_effect(*row, environment));
  }
}

void print_json(const std::vector<const OptionRow*>& rows, const Environment& environment) {
  nlohmann::json list = nlohmann::json::array();
  for (const OptionRow* row : rows)
    list.push_back({{"name", row->name},
                    {"alias", row->alias},
                    {"value", value_in_effect(*row, environment)},
                    {"default", row->fallback},
                    {"set", is_set(*row, environment)},
                    {"syntax", row->syntax()},
                    {"doc", row->doc}});
  const nlohmann::json document = {{"schema", kSchemaVersion}, {"variables", list}};
  fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

template <class Functions>
void print_library(const char* name, const Result<Driver<Functions>>& driver) {
  fmt::print("{:<10} {}\n", name, driver ? driver->version : "no: " + driver.error().text);
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
  const auto rows = all_options();
  json ? print_json(rows, session.environment) : print_text(rows, session.environment);
  const auto unknown = unknown_variables(rows, session.environment);
  for (const Unknown& u : unknown) session.log.warn("{}", to_text(u));
  return unknown.empty() ? kClean : kFindings;
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
