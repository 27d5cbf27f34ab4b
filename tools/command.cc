// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include "config.h"

namespace crosstie::tools {

int report(const Session& session, const Error& error) {
  session.log.error("{}", error.text);
  return error.code == Code::invalid ? kUsage : kCouldNotLook;
}

void add_all(CLI::App& app, Session& session) {
  app.set_version_flag("--version", "crosstie " PACKAGE_VERSION);
  add_topo(app, session);
  add_explain(app, session);
  add_calibrate(app, session);
  add_bench(app, session);
  add_config(app, session);
}

}  // namespace crosstie::tools
