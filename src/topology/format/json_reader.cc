// SPDX-License-Identifier: Apache-2.0
// Reads what json.cc writes. A key that it would not write is an error: what it says would be
// lost without a word.
#include <algorithm>

#include "base/printable.h"
#include "topology/cluster.h"
#include "topology/format/formats.h"
#include "topology/format/json_values.h"

namespace crosstie {
namespace {

using json::Value;

constexpr int64_t kMostDevices = 1 << 24;

void allow(const Value& object, std::initializer_list<std::string_view> known) {
  for (const std::string_view key : object.keys())
    if (std::ranges::find(known, key) == known.end())
      object.wrong(fmt::format("has \"{}\", which is not known here", printable(key)));
}

bool is_field(std::string_view key) {
  bool found = false;
  for_each_field([&](const auto& field) { found |= field.name == key; });
  return found;
}

void allow_device_keys(const Value& device) {
  constexpr std::array<std::string_view, 9> kOwn = {
      "id", "machine", "type", "name", "parent", "identity", "host", "attributes", "elements"};
  for (const std::string_view key : device.keys())
    if (std::ranges::find(kOwn, key) == kOwn.end() && !is_field(key))
      device.wrong(fmt::format("has \"{}\", which is not known here", printable(key)));
}

Identity read_identity(const Value& from) {
  allow(from, {"bdf", "uuid", "guid", "number", "name"});
  Identity id;
  if (const auto bdf = from.find("bdf")) id.bdf = bdf->bdf();
  if (const auto uuid = from.find("uuid")) id.uuid = uuid->text();
  if (const auto guid = from.find("guid")) id.guid = guid->bits(64);
  if (const auto number = from.find("number"))
    id.number = static_cast<uint32_t>(number->whole(0, UINT32_MAX));
  if (const auto name = from.find("name")) id.name = name->text();
  return id;
}

void read_facts(const Value& from, Device& d) {
  d.identity = read_identity(from.at("identity"));
  for_each_field([&](const auto& field) { json::read(from, field.name, d.*field.member); });
  if (const auto attributes = from.find("attributes"))
    for (const std::string_view key : attributes->keys())
      d.attributes.emplace(key, attributes->at(key).text());
}

class Reader {
 public:
  explicit Reader(const Value& root) : root_(root) {}

  Result<Topology> read() {
    expect_schema();
    allow(root_, {"schema", "version", "machines", "hosts", "leaves", "devices", "links",
                  "nccl_links", "gaps", "refusals"});
    for (const Value& machine : root_.items("machines")) read_machine(machine);
    if (parts_.empty()) root_.wrong("has no machines");
    for (const Value& device : root_.items("devices")) read_device(device);
    for (const Value& link : root_.items("links")) read_link(link, &Machine::Parts::links);
    for (const Value& link : root_.items("nccl_links"))
      read_link(link, &Machine::Parts::nccl_links);
    for (const Value& gap : root_.items("gaps")) read_gap(gap);
    for (const Value& refusal : root_.items("refusals")) read_refusal(refusal);
    return finish();
  }

 private:
  void expect_schema() const {
    if (root_.at("schema").text() != json::kSchema)
      root_.at("schema").wrong(fmt::format("is not {}", json::kSchema));
    if (root_.at("version").whole(0, INT32_MAX) != json::kVersion)
      root_.at("version").wrong(fmt::format("is not {}, the one read here", json::kVersion));
  }

  void read_machine(const Value& from) {
    allow(from, {"name", "source", "hosts_in_domain", "rails"});  // rails follow from the rest
    Machine::Parts& parts = parts_.emplace_back();
    parts.name = from.at("name").text();
    parts.source = from.at("source").text();
    if (const auto hosts = from.find("hosts_in_domain"))
      parts.hosts_in_domain = static_cast<uint32_t>(hosts->whole(1, kMostDevices));
  }

  size_t machine_of(const Value& from) const {
    return static_cast<size_t>(
        from.at("machine").whole(0, static_cast<int64_t>(parts_.size()) - 1));
  }

  // Ids count up, machine by machine.
  void read_device(const Value& from) {
    allow_device_keys(from);
    const size_t machine = machine_of(from);
    if (machine + 1 < first_.size()) from.at("machine").wrong("comes after a later machine's");
    first_.resize(machine + 1, next_);
    from.at("id").whole(next_, next_);
    next_++;
    Device& d = parts_[machine].devices.emplace_back();
    d.kind = from.at("type").word<DeviceKind>();
    d.label = from.at("name").text();
    if (const auto parent = from.find("parent"))
      d.parent = static_cast<uint32_t>(parent->whole(first_.back(), next_ - 1) - first_.back());
    if (const auto host = from.find("host"))
      d.host = static_cast<uint32_t>(host->whole(0, kMostDevices));
    read_facts(from, d);
    for (const Value& element : from.items("elements")) d.elements.push_back(element.text());
  }

  // The machine of which a device is, and its index there.
  std::pair<size_t, uint32_t> device(const Value& id) const {
    const int64_t wanted = id.whole(0, next_ - 1);
    const auto after = std::ranges::upper_bound(first_, wanted);
    const auto machine = static_cast<size_t>(after - first_.begin()) - 1;
    return {machine, static_cast<uint32_t>(wanted - first_[machine])};
  }

  std::pair<size_t, std::pair<uint32_t, uint32_t>> ends(const Value& from) const {
    const auto [machine, a] = device(from.at("a"));
    const auto [other, b] = device(from.at("b"));
    if (machine != other) from.wrong("joins devices of two machines");
    return {machine, {a, b}};
  }

  void read_link(const Value& from, std::vector<Link> Machine::Parts::*links) {
    allow(from, {"a", "b", "type", "count", "bytes_per_second"});
    const auto [machine, pair] = ends(from);
    Link link{.a = pair.first, .b = pair.second, .type = from.at("type").word<LinkType>()};
    link.count = static_cast<uint32_t>(from.at("count").whole(1, kMostDevices));
    json::read(from, "bytes_per_second", link.bandwidth);
    (parts_[machine].*links).push_back(link);
  }

  void read_gap(const Value& from) {
    allow(from, {"machine", "device", "missing", "assumed", "about"});
    const auto assumed = from.find("assumed");
    const auto about = from.find("about");
    auto& gaps = from.find("machine") ? parts_[machine_of(from)].gaps : topology_.gaps;
    gaps.push_back({from.at("device").text(), from.at("missing").text(),
                    assumed ? assumed->text() : std::string(),
                    about ? about->word<GapAbout>() : GapAbout::other});
  }

  void read_refusal(const Value& from) {
    allow(from, {"a", "b", "why"});
    const auto [machine, pair] = ends(from);
    parts_[machine].refusals.push_back({pair.first, pair.second, from.at("why").text()});
  }

  Result<Topology> finish() {
    std::vector<std::shared_ptr<const Machine>> machines;
    for (Machine::Parts& parts : parts_) {
      Machine machine(std::move(parts));
      if (const Status valid = validate(machine); !valid)
        return fail(Code::invalid, "{}", valid.error().text);
      machines.push_back(std::make_shared<const Machine>(std::move(machine)));
    }
    for (const Value& leaf : root_.items("leaves")) topology_.leaves.push_back(read_leaf(leaf));
    for (const Value& host : root_.items("hosts"))
      topology_.hosts.push_back(read_host(host, machines, topology_.leaves.size()));
    if (topology_.hosts.empty()) root_.wrong("has no hosts");
    return std::move(topology_);
  }

  static Leaf read_leaf(const Value& from) {
    allow(from, {"name", "rail"});
    Leaf leaf{from.at("name").text(), std::nullopt};
    if (const auto rail = from.find("rail"))
      leaf.rail = static_cast<uint32_t>(rail->whole(0, kMostDevices));
    return leaf;
  }

  Host read_host(const Value& from, const std::vector<std::shared_ptr<const Machine>>& machines,
                 size_t leaves) const {
    allow(from, {"name", "machine", "domain", "leaves", "units"});
    Host host{from.at("name").text(), machines[machine_of(from)]};
    for (const Value& unit : from.items("units"))
      host.units.push_back(read_unit(unit, machine_of(from)));
    if (const auto domain = from.find("domain")) host.domain = domain->text();
    for (const Value& leaf : from.items("leaves"))
      host.leaves.push_back(
          leaf.is_null() ? kNoLeaf
                         : static_cast<uint32_t>(leaf.whole(0, static_cast<int64_t>(leaves) - 1)));
    if (!host.leaves.empty() && host.leaves.size() != host.machine->count(DeviceKind::port))
      from.wrong("has not as many leaves as its machine has ports");
    return host;
  }

  // Of one host's devices, in their order.
  Unit read_unit(const Value& from, size_t host_machine) const {
    allow(from, {"device", "identity", "node_guid", "sys_image_guid", "lid", "gids", "fabric",
                 "attributes"});
    allow(from.at("identity"), {"uuid", "guid"});
    const auto [machine, index] = device(from.at("device"));
    if (machine != host_machine) from.wrong("is of a device of another machine");
    Device facts;
    read_facts(from, facts);
    Unit unit = take_unit(index, facts);
    if (!facts.attributes.empty())
      from.wrong(fmt::format("has \"{}\", which is no attribute of one host alone",
                             printable(facts.attributes.begin()->first)));
    return unit;
  }

  const Value& root_;
  Topology topology_;
  std::vector<Machine::Parts> parts_;
  std::vector<int64_t> first_;  // id of each machine's first device
  int64_t next_ = 0;            // id
};

// Depth of nesting is the one thing that the parser itself does not bound. Its callback could, but
// with one the parser goes over all of an array again after each of its elements.
constexpr int kDeepest = 16;

bool is_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size() && depth <= kDeepest; i++) {
    const char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
  }
  return depth > kDeepest;
}

Result<json::Json> parse(std::string_view text) {
  if (is_deep(text)) return fail(Code::invalid, "is nested more than {} deep", kDeepest);
  try {
    return json::Json::parse(text);
  } catch (const json::Json::parse_error& error) {
    const auto upto = text.substr(0, std::min(error.byte, text.size()));
    return fail(Code::invalid, "line {}: is no JSON{}", 1 + std::ranges::count(upto, '\n'),
                error.byte >= text.size() ? "; the file may be cut short" : "");
  } catch (const json::Json::out_of_range&) {
    return fail(Code::invalid, "holds a number too large to be one");
  }
}

}  // namespace

Result<Topology> read_json(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed) return pass(parsed);
  try {
    return Reader(Value(*parsed, "")).read();
  } catch (const json::Wrong& wrong) {
    return fail(Code::invalid, "{}{}{}", printable(wrong.where), wrong.where.empty() ? "" : ": ",
                wrong.what);
  }
}

}  // namespace crosstie
