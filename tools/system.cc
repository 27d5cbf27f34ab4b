// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <algorithm>
#include <map>

#include "topo.h"
#include "topology/format/file.h"
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
  if (!topology) return pass(topology);
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

Result<Profile> profile_of(const std::string& file) {
  if (file.empty()) return read_profile(known_profiles()[0].toml);
  const auto text = read_text(file);
  if (!text) return pass(text);
  auto profile = read_profile(*text);
  if (!profile) return pass(profile, file);
  return profile;
}

Result<NcclRelease> release_of(const std::string& text, const Session& session) {
  const auto version = parse_nccl_version(text);
  if (!version) return pass(version, "--nccl");
  const auto found = find_nccl_release(*version);
  if (!found) return pass(found, "--nccl");
  if (!found->note.empty()) session.log.warn("{}", found->note);
  return found->release;
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
