// SPDX-License-Identifier: Apache-2.0
#include "topology/cluster.h"

#include <algorithm>
#include <map>
#include <set>

#include "topology/replay.h"

namespace crosstie {
namespace {

using MachinePointer = std::shared_ptr<const Machine>;

// Of a host, and of the place of a process in a job.
bool is_own(std::string_view attribute) {
  return attribute.ends_with("host_hash") || attribute.ends_with("rank");
}

bool is_empty(const Unit& unit) { return unit == Unit{.device = unit.device}; }

struct Bare {
  MachinePointer machine;
  std::vector<Unit> units;
};

// The Machine without what is one host's alone.
Bare strip(const MachinePointer& machine) {
  Machine::Parts parts = machine->parts();
  std::vector<Unit> units;
  for (uint32_t i = 0; i < parts.devices.size(); i++)
    if (Unit unit = take_unit(i, parts.devices[i]); !is_empty(unit))
      units.push_back(std::move(unit));
  if (units.empty()) return {machine, {}};
  Machine bare(std::move(parts));
  // What nothing but a UUID tells apart keeps it.
  if (!validate(bare)) return {machine, {}};
  return {std::make_shared<const Machine>(std::move(bare)), std::move(units)};
}

// The host's Machine with what is its alone.
MachinePointer dress(const Host& host) {
  if (host.units.empty()) return host.machine;
  Machine::Parts parts = host.machine->parts();
  for (const Unit& unit : host.units) wear(unit, parts.devices[unit.device]);
  return std::make_shared<const Machine>(std::move(parts));
}

// What cannot be another host's. A card may be shared by hosts, but not its ports: a source that
// tells these is not taken at the card's word.
std::set<std::string> marks_of(const std::vector<Unit>& units) {
  std::set<std::string> marks;
  const bool tells_ports = std::ranges::any_of(
      units, [](const Unit& unit) { return unit.guid && *unit.guid >= kLeastGuid; });
  for (const Unit& unit : units) {
    if (!unit.uuid.empty()) marks.insert(unit.uuid);
    if (unit.guid && *unit.guid >= kLeastGuid) marks.insert(fmt::format("{:x}", *unit.guid));
    if (unit.sys_image_guid && unit.sys_image_guid->value >= kLeastGuid && !tells_ports)
      marks.insert(fmt::format("card {:x}", unit.sys_image_guid->value));
    for (const auto& [name, value] : unit.attributes)
      if (name.ends_with("host_hash")) marks.insert(fmt::format("hash {}", value));
  }
  return marks;
}

// Cabling, by the labels of ports; what the first sighting tells stays.
class Cabling {
 public:
  // seen: the builder's index of each device of the host's Machine.
  void add(const Host& host, const Builder& builder, const std::vector<uint32_t>& seen) {
    const auto ports = host.machine->of_kind(DeviceKind::port);
    for (size_t i = 0; i < ports.size() && i < host.leaves.size(); i++)
      if (host.leaves[i] != kNoLeaf)
        leaf_of_.emplace(builder.device(seen[ports[i]]).label, host.leaves[i]);
  }
  std::vector<uint32_t> leaves(const Machine& machine) const {
    if (leaf_of_.empty()) return {};
    std::vector<uint32_t> out;
    for (const uint32_t port : machine.of_kind(DeviceKind::port)) {
      const auto found = leaf_of_.find(machine.devices()[port].label);
      out.push_back(found == leaf_of_.end() ? kNoLeaf : found->second);
    }
    return out;
  }

 private:
  std::map<std::string, uint32_t> leaf_of_;
};

// Of two sightings whose ports are the same in the same order.
void add_leaves(std::vector<uint32_t>& known, const std::vector<uint32_t>& again) {
  if (known.empty()) known = again;
  for (size_t i = 0; i < known.size() && i < again.size(); i++)
    if (known[i] == kNoLeaf) known[i] = again[i];
}

class Cluster {
 public:
  void add(Topology part);
  Topology finish() &&;

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Entry {
    Host host;
    std::set<std::string> marks;
  };
  const Bare& bare(const MachinePointer& machine);
  std::set<std::string> marks_of_host(const Host& host, bool shared);
  void add_host(Host host, bool shared, size_t before);
  size_t known(const Host& host, const std::set<std::string>& marks, size_t before) const;
  void see_again(Host& known, const Host& again);
  void mark(size_t entry, const std::set<std::string>& marks);
  std::vector<uint32_t> adopt_leaves(const std::vector<Leaf>& leaves);
  void name_apart();
  void share_machines();
  void join_domains();

  std::vector<Entry> entries_;
  std::map<std::string, std::vector<size_t>> by_mark_;
  std::map<std::pair<std::string, std::string>, size_t> by_name_;  // and source
  std::map<MachinePointer, Bare> bare_;
  Topology result_;
};

const Bare& Cluster::bare(const MachinePointer& machine) {
  const auto found = bare_.find(machine);
  return found != bare_.end() ? found->second
                              : bare_.emplace(machine, strip(machine)).first->second;
}

// What a Machine says that several hosts of a part share is no mark of one of them.
std::set<std::string> Cluster::marks_of_host(const Host& host, bool shared) {
  if (!host.units.empty()) return marks_of(host.units);
  return shared ? std::set<std::string>{} : marks_of(bare(host.machine).units);
}

// Among the entries before this part's: hosts of one part are different ones.
size_t Cluster::known(const Host& host, const std::set<std::string>& marks, size_t before) const {
  if (marks.empty()) {
    const auto found = by_name_.find({host.name, host.machine->source()});
    const bool is = found != by_name_.end() && found->second < before;
    return is && entries_[found->second].marks.empty() ? found->second : kNone;
  }
  std::map<size_t, size_t> shared;
  for (const std::string& mark : marks)
    if (const auto found = by_mark_.find(mark); found != by_mark_.end())
      for (const size_t i : found->second)
        if (i < before) shared[i]++;
  for (const auto& [i, count] : shared)
    if (2 * count >= std::min(marks.size(), entries_[i].marks.size())) return i;
  return kNone;
}

void Cluster::see_again(Host& known, const Host& again) {
  const MachinePointer first = dress(known), second = dress(again);
  if (known.domain.empty()) known.domain = again.domain;
  if (first == second || same_kind(*first, *second)) return add_leaves(known.leaves, again.leaves);
  Builder builder(first->name(), first->source());
  builder.share_nvswitches(std::max(first->hosts_in_domain(), second->hosts_in_domain()));
  Cabling cabling;
  cabling.add(known, builder, replay(*first, builder, {}));
  cabling.add(again, builder, replay(*second, builder, {}));
  auto whole = std::move(builder).build();
  if (!whole) {
    result_.gaps.push_back({again.name,
                            fmt::format("what was seen of it in {} does not fit: {}",
                                        second->source(), whole.error().text),
                            "what was seen in " + first->source()});
    return;
  }
  known.leaves = cabling.leaves(*whole);
  known.machine = std::make_shared<const Machine>(std::move(*whole));
  known.units.clear();
}

std::vector<uint32_t> Cluster::adopt_leaves(const std::vector<Leaf>& leaves) {
  std::map<std::string_view, uint32_t> known;
  for (uint32_t i = 0; i < result_.leaves.size(); i++) known.emplace(result_.leaves[i].name, i);
  std::vector<uint32_t> place;
  std::vector<Leaf> fresh;
  for (const Leaf& leaf : leaves) {
    const auto next = static_cast<uint32_t>(result_.leaves.size() + fresh.size());
    const auto [found, is_new] = known.emplace(leaf.name, next);
    place.push_back(found->second);
    if (is_new)
      fresh.push_back(leaf);
    else if (found->second < result_.leaves.size() &&
             result_.leaves[found->second].rail != leaf.rail)
      result_.leaves[found->second].rail.reset();
  }
  std::ranges::move(fresh, std::back_inserter(result_.leaves));
  return place;
}

void Cluster::mark(size_t entry, const std::set<std::string>& marks) {
  for (const std::string& mark : marks)
    if (entries_[entry].marks.insert(mark).second) by_mark_[mark].push_back(entry);
}

void Cluster::add_host(Host host, bool shared, size_t before) {
  const auto marks = marks_of_host(host, shared);
  size_t entry = known(host, marks, before);
  if (entry != kNone) {
    see_again(entries_[entry].host, host);
  } else {
    entry = entries_.size();
    by_name_.emplace(std::pair(host.name, host.machine->source()), entry);
    entries_.push_back({std::move(host), {}});
  }
  mark(entry, marks);
}

void Cluster::add(Topology part) {
  const auto place = adopt_leaves(part.leaves);
  std::map<const Machine*, size_t> uses;
  for (const Host& host : part.hosts) uses[host.machine.get()]++;
  const size_t before = entries_.size();
  for (Host& host : part.hosts) {
    for (uint32_t& leaf : host.leaves)
      if (leaf != kNoLeaf) leaf = place[leaf];
    const bool shared = uses[host.machine.get()] > 1;
    add_host(std::move(host), shared, before);
  }
  for (Gap& gap : part.gaps)
    if (std::ranges::find(result_.gaps, gap) == result_.gaps.end())
      result_.gaps.push_back(std::move(gap));
}

void Cluster::name_apart() {
  std::set<std::string> names;
  for (Entry& entry : entries_) {
    const std::string name = entry.host.name;
    for (int n = 2; !names.insert(entry.host.name).second; n++)
      entry.host.name = fmt::format("{}#{}", name, n);
  }
}

// Where Machines are of one kind, hosts keep what is theirs; where a kind is one Machine, it stays
// as it is.
void Cluster::share_machines() {
  struct Kind {
    MachinePointer bare;
    std::set<MachinePointer> machines;
  };
  std::vector<Kind> kinds;
  std::map<MachinePointer, size_t> kind_of;
  for (const Entry& entry : entries_) {
    const MachinePointer& machine = entry.host.machine;
    if (kind_of.contains(machine)) continue;
    const MachinePointer& own = bare(machine).machine;
    const auto same =
        std::ranges::find_if(kinds, [&](const Kind& k) { return same_kind(*k.bare, *own); });
    kind_of[machine] = static_cast<size_t>(same - kinds.begin());
    if (same == kinds.end()) kinds.push_back({own, {}});
    kinds[kind_of[machine]].machines.insert(machine);
  }
  for (Entry& entry : entries_) {
    const Kind& kind = kinds[kind_of[entry.host.machine]];
    if (kind.machines.size() == 1) continue;
    if (entry.host.units.empty()) entry.host.units = bare(entry.host.machine).units;
    entry.host.machine = kind.bare;
  }
}

// The clique that every whole GPU of the host tells of; none where one does not, or they differ. A
// zero UUID is what GPUs without such a fabric tell.
std::string clique_of(const Host& host) {
  const auto devices = host.machine->devices();
  std::map<uint32_t, Property<FabricClique>> fabrics;
  for (const Unit& unit : host.units) fabrics[unit.device] = unit.fabric;
  std::set<std::string> cliques;
  for (const uint32_t i : host.machine->whole_gpus()) {
    const Device& d = devices[i];
    const auto& fabric = d.fabric ? d.fabric : fabrics[i];
    const bool zero = !fabric || fabric->value.cluster.find_first_not_of("0-") == std::string::npos;
    cliques.insert(zero ? "" : fmt::format("{}/{}", fabric->value.cluster, fabric->value.clique));
  }
  return cliques.size() == 1 ? *cliques.begin() : "";
}

void Cluster::join_domains() {
  std::map<std::string, std::vector<Host*>> cliques;
  for (Host& host : result_.hosts)
    if (const std::string clique = clique_of(host); !clique.empty() && host.domain.empty())
      cliques[clique].push_back(&host);
  for (auto& [clique, hosts] : cliques) {
    if (hosts.size() < 2) continue;
    const bool joined = std::ranges::all_of(
        hosts, [](const Host* h) { return h->machine->count(DeviceKind::nvswitch) > 0; });
    for (Host* const host : hosts)
      if (joined) host->domain = clique;
    result_.gaps.push_back(
        {clique,
         joined ? "that its hosts reach each other over NVLink is told and was not tried"
                : "its hosts tell of one NVLink fabric, but not all have an NVSwitch",
         joined ? "that they do" : "that they do not"});
  }
}

Topology Cluster::finish() && {
  name_apart();
  share_machines();
  for (Entry& entry : entries_) result_.hosts.push_back(std::move(entry.host));
  join_domains();
  return std::move(result_);
}

}  // namespace

Unit take_unit(uint32_t index, Device& device) {
  Unit unit{.device = index};
  unit.uuid = std::exchange(device.identity.uuid, {});
  unit.guid = std::exchange(device.identity.guid, {});
  unit.node_guid = std::exchange(device.node_guid, {});
  unit.sys_image_guid = std::exchange(device.sys_image_guid, {});
  unit.lid = std::exchange(device.lid, {});
  unit.gids = std::exchange(device.gids, {});
  unit.fabric = std::exchange(device.fabric, {});
  for (auto at = device.attributes.begin(); at != device.attributes.end();) {
    const auto next = std::next(at);
    if (is_own(at->first)) unit.attributes.insert(device.attributes.extract(at));
    at = next;
  }
  return unit;
}

void wear(const Unit& unit, Device& device) {
  device.identity.uuid = unit.uuid;
  device.identity.guid = unit.guid;
  device.node_guid = unit.node_guid;
  device.sys_image_guid = unit.sys_image_guid;
  device.lid = unit.lid;
  device.gids = unit.gids;
  device.fabric = unit.fabric;
  device.attributes.insert(unit.attributes.begin(), unit.attributes.end());
}

Topology merge(std::vector<Topology> parts) {
  Cluster cluster;
  for (Topology& part : parts) cluster.add(std::move(part));
  return std::move(cluster).finish();
}

}  // namespace crosstie
