// SPDX-License-Identifier: Apache-2.0
// A topology as programs read it. Every device stands once, whatever the number of hosts that
// have one like it: "machine" says of which kind of host it is part, and hosts name theirs.
#include <algorithm>
#include <unordered_map>

#include "base/printable.h"
#include "topology/cluster.h"
#include "topology/format/formats.h"
#include "topology/format/json_values.h"
#include "topology/rails.h"

namespace crosstie {
namespace {

using json::Json;
using json::plain;

Json identity_json(const Identity& id) {
  Json out = Json::object();
  if (id.bdf) out["bdf"] = to_text(*id.bdf);
  if (!id.uuid.empty()) out["uuid"] = plain(id.uuid);
  if (id.guid) out["guid"] = plain(*id.guid);
  if (id.number) out["number"] = *id.number;
  if (!id.name.empty()) out["name"] = plain(id.name);
  return out;
}

void put_facts(Json& out, const Device& d) {
  out["identity"] = identity_json(d.identity);
  for_each_field([&](const auto& field) { json::put(out, field.name, d.*field.member); });
  std::map<std::string, Json> attributes;  // in the order of the names as they are written
  for (const auto& [key, value] : d.attributes)
    attributes.emplace(is_utf8(key) ? key : printable(key), plain(value));
  for (auto& [key, value] : attributes) out["attributes"][key] = std::move(value);
}

Json device_json(const Device& d, size_t id, size_t first, size_t machine) {
  Json out = {{"id", id}, {"machine", machine}, {"type", name(d.kind)}, {"name", plain(d.label)}};
  out["parent"] = d.parent == kNoDevice ? Json() : Json(first + d.parent);
  if (d.host != 0) out["host"] = d.host;
  put_facts(out, d);
  for (const auto& element : d.elements) out["elements"].push_back(plain(element));
  return out;
}

Json link_json(const Link& link, size_t first) {
  Json out = {{"a", first + link.a},
              {"b", first + link.b},
              {"type", name(link.type)},
              {"count", link.count}};
  json::put(out, "bytes_per_second", link.bandwidth);
  return out;
}

// `machine` is null for those of the cluster.
Json gap_json(const Gap& gap, const Json& machine) {
  Json out = {{"machine", machine}, {"device", plain(gap.device)}, {"missing", plain(gap.missing)}};
  out["assumed"] = gap.assumed.empty() ? Json() : plain(gap.assumed);
  out["about"] = name(gap.about);
  return out;
}

Json refusal_json(const Refusal& refusal, size_t first) {
  return {{"a", first + refusal.a}, {"b", first + refusal.b}, {"why", plain(refusal.why)}};
}

// Every port, and why it serves no GPU if it serves none.
Json rails_json(const Machine& machine, size_t first) {
  Json out = Json::array();
  for (const Rails::Port& port : match_rails(machine).ports) {
    Json& next = out.emplace_back(Json{{"port", first + port.device}});
    next["rail"] = port.rail ? Json(*port.rail) : Json();
    next["gpus"] = Json::array();
    for (const uint32_t gpu : port.gpus) next["gpus"].push_back(first + gpu);
    if (!port.idle.empty()) next["idle"] = port.idle;
  }
  return out;
}

void add_machine(Json& out, const Machine& m, size_t index, JsonRails rails) {
  Json machine = {{"name", plain(m.name())}, {"source", plain(m.source())}};
  if (m.hosts_in_domain() > 1) machine["hosts_in_domain"] = m.hosts_in_domain();
  const size_t first = out["devices"].size();
  if (rails == JsonRails::matched && paths_fit(m)) machine["rails"] = rails_json(m, first);
  out["machines"].push_back(std::move(machine));
  for (size_t i = 0; i < m.devices().size(); i++)
    out["devices"].push_back(device_json(m.devices()[i], first + i, first, index));
  for (const Link& link : m.links()) out["links"].push_back(link_json(link, first));
  for (const Link& link : m.nccl_links()) out["nccl_links"].push_back(link_json(link, first));
  for (const Gap& gap : m.gaps()) out["gaps"].push_back(gap_json(gap, index));
  for (const Refusal& refusal : m.refusals())
    out["refusals"].push_back(refusal_json(refusal, first));
}

// `first` is the id of the first device of the host's machine.
Json unit_json(const Unit& unit, size_t first) {
  Json out = {{"device", first + unit.device}};
  Device facts;
  wear(unit, facts);
  put_facts(out, facts);
  return out;
}

Json host_json(const Host& host, size_t machine, size_t first) {
  Json out = {{"name", plain(host.name)}, {"machine", machine}};
  if (!host.domain.empty()) out["domain"] = plain(host.domain);
  for (const uint32_t leaf : host.leaves)
    out["leaves"].push_back(leaf == kNoLeaf ? Json() : Json(leaf));
  for (const Unit& unit : host.units) out["units"].push_back(unit_json(unit, first));
  return out;
}

Json leaf_json(const Leaf& leaf) {
  Json out = {{"name", plain(leaf.name)}};
  if (leaf.rail) out["rail"] = *leaf.rail;
  return out;
}

}  // namespace

std::string json_text(const Topology& topology, JsonRails rails) {
  Json out = {{"schema", json::kSchema}, {"version", json::kVersion}};
  for (const char* list :
       {"machines", "hosts", "leaves", "devices", "links", "nccl_links", "gaps", "refusals"})
    out[list] = Json::array();
  std::unordered_map<const Machine*, size_t> machines;
  std::vector<size_t> first;
  for (const Host& host : topology.hosts) {
    const auto [known, is_new] = machines.emplace(host.machine.get(), machines.size());
    if (is_new) first.push_back(out["devices"].size());
    if (is_new) add_machine(out, *host.machine, known->second, rails);
    out["hosts"].push_back(host_json(host, known->second, first[known->second]));
  }
  for (const Gap& gap : topology.gaps) out["gaps"].push_back(gap_json(gap, Json()));
  for (const Leaf& leaf : topology.leaves) out["leaves"].push_back(leaf_json(leaf));
  // In ASCII, so that it may be shown on a terminal too.
  return out.dump(1, ' ', true) + "\n";
}

}  // namespace crosstie
