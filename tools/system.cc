// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "api/options.h"
#include "cost/known_systems.h"
#include "topo.h"
#include "topology/format/file.h"
#include "topology/format/formats.h"
#include "topology/variation.h"

namespace crosstie::tools {
namespace {

// Hosts of an NVLink domain, of which a cluster file may put fewer together than the kind has.
uint32_t most_hosts_in_domain(const Topology& topology) {
  std::map<std::string_view, uint32_t> count;
  for (const Host& host : topology.hosts)
    if (!host.domain.empty()) count[host.domain]++;
  uint32_t most = 1;
  for (const auto& [domain, hosts] : count) most = std::max(most, hosts);
  return most;
}

}  // namespace

Result<System> read_system(const std::string& text, const Session& session) {
  const auto topology = look_at_any_size({text}, session);
  if (!topology) return pass_unread(topology);
  const Host& first = topology->hosts[0];
  for (const Host& other : topology->hosts)
    if (!same_kind(*first.machine, *other.machine))
      return fail(Code::invalid, "{}: {} and {} are not of one kind", text, first.name, other.name);
  System system{text, first.machine};
  if (topology->hosts.size() == 1) return system;
  system.hosts = static_cast<uint32_t>(topology->hosts.size());
  Machine::Parts parts = first.machine->parts();
  parts.hosts_in_domain = most_hosts_in_domain(*topology);
  system.kind = std::make_shared<const Machine>(std::move(parts));
  return system;
}

Result<uint32_t> hosts_of_job(const System& system, uint32_t asked) {
  if (asked == 0) return std::max(1u, system.hosts);
  if (system.hosts > 0 && asked > system.hosts)
    return fail(Code::invalid, "--nodes {}: {} has {} hosts", asked, system.name, system.hosts);
  return asked;
}

Result<Profile> profile_of(const std::string& text) {
  auto built_in = read_profile(known_profiles()[0].toml);
  if (text.empty() || !built_in) return built_in;
  const auto facts = facts_of_known(text);
  if (facts) {
    built_in->system = *facts;
    return built_in;
  }
  if (is_known_machine(split_variation(text).name)) return pass(facts);
  const auto toml = read_text(readable(text));
  if (std::error_code none; !toml && !std::filesystem::exists(text, none))
    return fail(Code::invalid, "{}, and {}", toml.error().text, facts.error().text);
  if (!toml) return pass_unread(toml);
  auto profile = read_profile(*toml);
  if (!profile) return pass_unread(Result<Profile>(pass(profile, text)));
  return profile;
}

Result<KnownNcclRelease> release_of(const std::string& text) {
  const auto version = parse_nccl_version(text);
  if (!version) return pass(version, "--nccl");
  auto found = find_nccl_release(*version);
  if (!found) return pass(found, "--nccl");
  return found;
}

bool too_unsure(const std::vector<std::string>& warnings, const Session& session) {
  for (const std::string& warning : warnings) session.log.warn("{}", warning);
  const auto set = read_options<LibraryOptions>(kLibraryOptions, session.environment);
  if (!set) return session.log.error("{}", set.error().text), true;
  if (warnings.empty() || !set->strict) return false;
  session.log.error("nothing is written, as what is unsure counts as an error");
  return true;
}

CLI::Option* add_system(CLI::App& app, std::string& text) {
  return app
      .add_option("--system", text,
                  fmt::format("A machine known by name, or a topology or cluster file; after a "
                              "colon what is to differ, several by comma: {}",
                              variation_examples()))
      ->check(is_an_input());
}

}  // namespace crosstie::tools
