// SPDX-License-Identifier: Apache-2.0
// A topology as programs read it. Bandwidths are one way, in 10^9 bytes a second. Every device
// stands once, whatever the number of hosts that have one like it: "machine" says of which kind
// of host it is part, "hosts" how many of a kind there are.
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "topology/format/formats.h"

namespace crosstie {
namespace {

using Json = nlohmann::ordered_json;

// Goes up with every change that an old reader would stumble over.
constexpr int kSchemaVersion = 1;

// JSON can hold no text that is not Unicode; printable() keeps two such texts apart.
Json plain(const std::string& value) { return is_utf8(value) ? value : printable(value); }
Json plain(double value) { return value; }
Json plain(int value) { return value; }
Json plain(bool value) { return value; }
Json plain(Bandwidth value) { return value.bytes_per_second / 1e9; }
Json plain(Seconds value) { return value.count() * 1e6; }
Json plain(const CpuModel& value) {
  return {{"arch", plain(value.arch)},
          {"vendor", plain(value.vendor)},
          {"family", value.family},
          {"model", value.model}};
}

template <class T>
void put(Json& out, const char* key, const Property<T>& property) {
  if (property) out[key] = {{"value", plain(property->value)}, {"from", name(property->from)}};
}

Json identity_json(const Identity& id) {
  Json out = Json::object();
  if (id.bdf) out["bdf"] = to_text(*id.bdf);
  if (!id.uuid.empty()) out["uuid"] = plain(id.uuid);
  if (id.guid) out["guid"] = fmt::format("0x{:016x}", *id.guid);
  if (id.number) out["number"] = *id.number;
  if (!id.name.empty()) out["name"] = plain(id.name);
  return out;
}

Json device_json(const Device& d, size_t id, size_t first, size_t machine) {
  Json out = {{"id", id}, {"machine", machine}, {"type", name(d.kind)}, {"name", plain(d.label)}};
  out["parent"] = d.parent == kNoDevice ? Json() : Json(first + d.parent);
  out["identity"] = identity_json(d.identity);
  put(out, "model", d.model);
  put(out, "cpu", d.cpu);
  put(out, "pcie_gigatransfers_per_second", d.pcie_speed);
  put(out, "pcie_lanes", d.pcie_lanes);
  put(out, "compute_capability", d.compute_capability);
  put(out, "line_rate_gigabytes_per_second", d.line_rate);
  put(out, "latency_microseconds", d.latency);
  put(out, "gpu_direct", d.gpu_direct);
  return out;
}

Json link_json(const Link& link, size_t first) {
  Json out = {{"a", first + link.a},
              {"b", first + link.b},
              {"type", name(link.type)},
              {"count", link.count}};
  put(out, "gigabytes_per_second", link.bandwidth);
  return out;
}

Json gap_json(const Gap& gap, size_t machine) {
  Json out = {{"machine", machine}, {"device", plain(gap.device)}, {"missing", plain(gap.missing)}};
  out["assumed"] = gap.assumed.empty() ? Json() : plain(gap.assumed);
  return out;
}

void add_machine(Json& out, const Machine& m, size_t index) {
  const size_t first = out["devices"].size();
  for (size_t i = 0; i < m.devices().size(); i++)
    out["devices"].push_back(device_json(m.devices()[i], first + i, first, index));
  for (const Link& link : m.links()) out["links"].push_back(link_json(link, first));
  for (const Gap& gap : m.gaps()) out["gaps"].push_back(gap_json(gap, index));
}

}  // namespace

std::string json_text(const Topology& topology) {
  Json out = {{"schema", "crosstie-topology"}, {"version", kSchemaVersion}};
  for (const char* list : {"hosts", "devices", "links", "gaps"}) out[list] = Json::array();
  std::vector<const Machine*> machines;
  for (const Host& host : topology.hosts) {
    const Machine* const m = host.machine.get();
    auto place = std::ranges::find(machines, m);
    const auto index = static_cast<size_t>(place - machines.begin());
    if (place == machines.end()) {
      machines.push_back(m);
      out["hosts"].push_back({{"machine", index},
                              {"name", plain(m->name())},
                              {"source", plain(m->source())},
                              {"count", 0}});
      add_machine(out, *m, index);
    }
    Json& count = out["hosts"][index]["count"];
    count = count.get<size_t>() + 1;
  }
  // In ASCII, so that it may be shown on a terminal too.
  return out.dump(1, ' ', true) + "\n";
}

}  // namespace crosstie
