// SPDX-License-Identifier: Apache-2.0
#include "runtime/team.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <span>

#include "runtime/fields.h"

namespace crosstie {
namespace {

std::string_view text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

Blob blob_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<uint32_t> host_labels(const std::vector<RankFacts>& facts) {
  std::map<std::string, uint32_t> labels;
  std::vector<uint32_t> out;
  for (const RankFacts& fact : facts)
    out.push_back(labels.emplace(fact.host, static_cast<uint32_t>(labels.size())).first->second);
  return out;
}

}  // namespace

// What ranks have alike comes first: the table of all says it once.
std::string pack(const RankFacts& facts) {
  std::string packed;
  for (const std::string_view text :
       {std::string_view(facts.version), std::string_view(facts.settings),
        std::string_view(facts.host), std::string_view(facts.hostname), text_of(facts.inside),
        text_of(facts.across)})
    add_text(packed, text);
  add_number(packed, static_cast<uint32_t>(facts.pid));
  return packed;
}

Result<RankFacts> unpack_facts(std::string_view packed) {
  RankFacts facts;
  std::string_view inside, across;
  const auto text = [&packed](auto& to) {
    const auto found = take_text(packed);
    if (found) to = *found;
    return found.has_value();
  };
  const bool whole = text(facts.version) && text(facts.settings) && text(facts.host) &&
                     text(facts.hostname) && text(inside) && text(across);
  const auto pid = take_number(packed);
  if (!whole || !pid) return fail(Code::peer, "facts that cannot be read");
  facts.inside = blob_of(inside);
  facts.across = blob_of(across);
  facts.pid = static_cast<int>(*pid);
  return facts;
}

std::string kernel_identity() {
  std::string boot = "unknown-boot";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "";
  const ssize_t length = readlink("/proc/self/ns/net", space, sizeof space);
  return fmt::format("{} {}", boot,
                     std::string_view(space, length > 0 ? static_cast<size_t>(length) : 0));
}

Result<Team> Team::make(int rank, const std::vector<std::string>& packed) {
  Team team;
  team.rank_ = rank;
  for (size_t i = 0; i < packed.size(); i++) {
    auto facts = unpack_facts(packed[i]);
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
