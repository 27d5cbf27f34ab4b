// SPDX-License-Identifier: Apache-2.0
#include "runtime/team.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace crosstie {
namespace {

using nlohmann::json;

json numbers(const Blob& blob) {
  json list = json::array();
  for (const std::byte b : blob) list.push_back(static_cast<int>(b));
  return list;
}

Blob blob(const json& list) {
  Blob bytes;
  for (const json& number : list) bytes.push_back(static_cast<std::byte>(number.get<int>()));
  return bytes;
}

std::vector<uint32_t> host_labels(const std::vector<RankFacts>& facts) {
  std::map<std::string, uint32_t> labels;
  std::vector<uint32_t> out;
  for (const RankFacts& fact : facts)
    out.push_back(labels.emplace(fact.host, static_cast<uint32_t>(labels.size())).first->second);
  return out;
}

}  // namespace

std::string to_text(const RankFacts& f) {
  const json facts = {{"host", f.host},
                      {"hostname", f.hostname},
                      {"pid", f.pid},
                      {"version", f.version},
                      {"settings", f.settings},
                      {"inside", numbers(f.inside)},
                      {"across", numbers(f.across)}};
  return facts.dump(-1, ' ', true, json::error_handler_t::replace);  // a host name may be any bytes
}

Result<RankFacts> parse_facts(const std::string& text) {
  try {
    const json f = json::parse(text);
    return RankFacts{f.at("host"),     f.at("hostname"),     f.at("pid"),         f.at("version"),
                     f.at("settings"), blob(f.at("inside")), blob(f.at("across"))};
  } catch (const json::exception& error) {
    return fail(Code::peer, "facts that cannot be read: {}", error.what());
  }
}

std::string kernel_identity() {
  std::string boot = "unknown-boot";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "";
  const ssize_t length = readlink("/proc/self/ns/net", space, sizeof space);
  return fmt::format("{} {}", boot,
                     std::string_view(space, length > 0 ? static_cast<size_t>(length) : 0));
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown-host";
}

Result<Team> Team::make(int rank, const std::vector<std::string>& texts) {
  Team team;
  team.rank_ = rank;
  for (size_t i = 0; i < texts.size(); i++) {
    auto facts = parse_facts(texts[i]);
    if (!facts) return pass(facts, fmt::format("rank {}", i));
    team.facts_.push_back(std::move(*facts));
  }
  for (int i = 1; i < team.ranks(); i++) {
    const RankFacts &a = team.facts(0), &b = team.facts(i);
    if (a.version != b.version || a.settings != b.settings)
      return fail(Code::invalid, "{} has {} {}, {} has {} {}: make them equal", team.name(0),
                  a.version, a.settings, team.name(i), b.version, b.settings);
  }
  auto shape = Shape::make({host_labels(team.facts_), {}, {}});
  if (!shape) return pass(shape);
  team.shape_ = std::make_shared<const Shape>(std::move(*shape));
  return team;
}

std::string Team::name(int rank) const {
  return fmt::format("rank {} on host {} (pid {})", rank, facts(rank).hostname, facts(rank).pid);
}

}  // namespace crosstie
