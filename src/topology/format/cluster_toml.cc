// SPDX-License-Identifier: Apache-2.0
// Reads a cluster in TOML:
//
//   [[hosts]]                     # hosts of one kind; as many such tables as there are kinds
//   names = "node[0001-2048]"     # as Slurm writes them, or a list of such
//   machine = "dgx-h100"          # known by name; or a file: NCCL's XML, a machine, whatever is
//                                 # read as one host. "{host}" in it is the host's name, so that
//                                 # each has its own file. Or a table that describes a machine
//   rails = ["mlx5_0", "mlx5_3"]  # the port on rail 0, on rail 1, …; or a list of ports for a rail
//   domain = "rack{group}"        # the NVLink domain that the hosts share, …
//   hosts_per_domain = 18         # … each so many in a row one: {group} counts them from 0
//   overlay = "guest.toml"        # what a VM hides (overlay_toml.cc); a file or a table
//
//   [[leaves]]                    # a leaf switch, or a row of them
//   name = "pod{group}-rail{rail}"
//   hosts = "node[0001-2048]"     # cabled to it
//   rails = [0, 1, 2, 3, 4, 5, 6, 7]   # with their ports on these rails, each rail on a leaf of
//                                      # its own if {rail} is in the name
//   hosts_per_leaf = 32           # so many in a row on one: {group} counts them from 0
//
// Files are relative to this one. Without `rails`, ports are on rails in their order, which a gap
// says where leaves are given; ports that it leaves out but that serve GPUs get the rails that are
// free, which a gap says. Without `domain`, hosts of a kind whose NVSwitches are outside it
// (gb200-nvl72) share them in their order. Hosts of which all is equal share one Machine.
#include <map>

#include "base/text.h"
#include "topology/cluster.h"
#include "topology/domain.h"
#include "topology/format/file.h"
#include "topology/format/toml.h"
#include "topology/host_names.h"
#include "topology/rails.h"

namespace crosstie {
namespace {

constexpr int64_t kMostHosts = 1 << 20;
constexpr int64_t kMostRail = 1023;
constexpr size_t kMostNamed = 4;  // ports of one gap
using MachinePointer = std::shared_ptr<const Machine>;

// {key} in the pattern becomes the value. What else is in braces stays.
std::string fill(std::string pattern, std::string_view key, const std::string& value) {
  const std::string braced = fmt::format("{{{}}}", key);
  for (size_t at = 0; (at = pattern.find(braced, at)) != pattern.npos; at += value.size())
    pattern.replace(at, braced.size(), value);
  return pattern;
}

bool has(std::string_view pattern, std::string_view braced) {
  return pattern.find(braced) != pattern.npos;
}

class Reader : TomlReader {
 public:
  explicit Reader(const std::string& source)
      : source_(source), folder_(std::filesystem::path(source).parent_path()) {}

  Result<Topology> read(const toml::table& root);

 private:
  struct Row {
    std::string name;
    std::vector<std::string> hosts;
    std::vector<int64_t> rails;
    size_t hosts_per_leaf;
  };

  void read_hosts(const toml::table& in);
  std::vector<std::string> names(const toml::table& in, std::string_view key);
  void expand(const toml::node& node, std::vector<std::string>& into);
  MachinePointer machine_of(const toml::table& in, const std::string& host);
  MachinePointer machine_named(const toml::node& at, const std::string& text);
  MachinePointer inline_machine(const toml::table& table);
  MachinePointer lay(const toml::table& in, MachinePointer machine);
  MachinePointer give_rails(const toml::array& rails, MachinePointer machine);
  void put_on_rail(const toml::node& port, int rail, Machine::Parts& parts);
  static void complete_rails(Machine::Parts& parts);
  void give_domains(const toml::table& in, size_t first);

  Row row(const toml::table& in);
  void read_leaves(const toml::table& in);
  void assume_rails();
  void cable(const toml::node& at, Host& host, int64_t rail, const std::string& leaf);
  uint32_t leaf(const std::string& name, int64_t rail);
  void say_what_is_loose();

  // Errors of others, as a mistake of the table that named them.
  template <class T>
  bool good(const toml::node& at, const Result<T>& result) {
    if (!result) mistake(at, result.error().text);
    return result.has_value();
  }

  const std::string source_;
  const std::filesystem::path folder_;
  Topology topology_;
  std::map<std::string, size_t> host_;
  std::map<std::string, uint32_t> leaf_;
  std::map<std::string, MachinePointer> by_name_;
};

Result<Topology> Reader::read(const toml::table& root) {
  allow(root, "a cluster", {"hosts", "leaves"});
  for_each_table(root, "hosts", [&](const auto& in) { read_hosts(in); });
  if (status_ && topology_.hosts.empty()) mistake(root, "a cluster needs [[hosts]]");
  if (!status_) return pass(status_);
  topology_ = merge({std::move(topology_)});
  if (root.contains("leaves")) assume_rails();
  for_each_table(root, "leaves", [&](const auto& in) { read_leaves(in); });
  if (!status_) return pass(status_);
  if (!topology_.leaves.empty()) say_what_is_loose();
  return std::move(topology_);
}

void Reader::expand(const toml::node& node, std::vector<std::string>& into) {
  const auto text = node.value<std::string>();
  if (!text) return mistake(node, "names of hosts must be a string, as \"node[1-4]\"");
  if (!status_) return;
  auto expanded = expand_host_names(*text);
  if (!good(node, expanded)) return;
  if (into.size() + expanded->size() > kMostHosts)
    return mistake(node, fmt::format("more than {} hosts", kMostHosts));
  std::ranges::move(*expanded, std::back_inserter(into));
}

std::vector<std::string> Reader::names(const toml::table& in, std::string_view key) {
  std::vector<std::string> all;
  const toml::node* const node = in.get(key);
  if (node == nullptr) {
    mistake(in, fmt::format("'{}' is needed", key));
  } else if (const toml::array* const several = node->as_array()) {
    for (const toml::node& each : *several) expand(each, all);
  } else {
    expand(*node, all);
  }
  return all;
}

void Reader::read_hosts(const toml::table& in) {
  allow(in, "[[hosts]]", {"names", "machine", "rails", "domain", "hosts_per_domain", "overlay"});
  const size_t first = topology_.hosts.size();
  std::map<MachinePointer, MachinePointer> finished;
  const auto all = names(in, "names");
  if (status_ && first + all.size() > kMostHosts)
    return mistake(in, fmt::format("more than {} hosts in all", kMostHosts));
  for (const std::string& name : all) {
    if (!host_.emplace(name, topology_.hosts.size()).second)
      return mistake(in, fmt::format("host {} is listed twice", name));
    const MachinePointer plain = machine_of(in, name);
    if (!status_) return;
    MachinePointer& whole = finished[plain];
    if (!whole) whole = give_rails(list(in, "rails"), lay(in, plain));
    if (!status_) return;
    topology_.hosts.push_back({name, whole});
  }
  if (status_) give_domains(in, first);
}

MachinePointer Reader::machine_of(const toml::table& in, const std::string& host) {
  const toml::node* const node = in.get("machine");
  if (node == nullptr) {
    mistake(in, "'machine' is needed");
    return {};
  }
  if (const toml::table* const table = node->as_table()) return inline_machine(*table);
  const auto text = node->value<std::string>();
  if (!text) {
    mistake(*node, "'machine' must be a name, a file or a table");
    return {};
  }
  return machine_named(*node, fill(*text, "host", host));
}

// One for all hosts of the table.
MachinePointer Reader::inline_machine(const toml::table& table) {
  MachinePointer& known = by_name_[fmt::format("line {}", table.source().begin.line)];
  if (known) return known;
  auto machine = read_machine_table(table, source_);
  if (!machine && status_) status_ = pass(machine);  // tells its line itself
  if (machine) known = std::make_shared<const Machine>(std::move(*machine));
  return known;
}

MachinePointer Reader::machine_named(const toml::node& at, const std::string& text) {
  MachinePointer& known = by_name_[text];
  if (known) return known;
  std::error_code none;
  const std::filesystem::path file = folder_ / text;
  const auto wish = parse_wish(text);
  const bool is_known = wish && is_known_machine(wish->machine);
  const bool is_file = !is_known && std::filesystem::exists(file, none);
  const auto topology = is_file ? read_host_file(file) : read_synthetic(text);
  if (!good(at, topology)) return {};
  if (topology->hosts.size() != 1)
    mistake(at, fmt::format("'{}' is {} hosts; a machine is one", text, topology->hosts.size()));
  return known = topology->hosts[0].machine;
}

MachinePointer Reader::lay(const toml::table& in, MachinePointer machine) {
  const toml::node* const node = in.get("overlay");
  if (node == nullptr) return machine;
  const auto file = node->value<std::string>();
  if (!file && !node->is_table()) {
    mistake(*node, "'overlay' must be a file or a table");
    return machine;
  }
  const auto overlay =
      file ? read_overlay_file(folder_ / *file) : read_overlay_table(*node->as_table());
  if (!overlay && !file && status_) status_ = pass(overlay);  // tells its line itself
  if (!good(*node, overlay)) return machine;
  auto whole = lay_over(*machine, *overlay);
  return good(*node, whole) ? std::make_shared<const Machine>(std::move(whole->machine)) : machine;
}

MachinePointer Reader::give_rails(const toml::array& rails, MachinePointer machine) {
  if (rails.empty() || !status_) return machine;
  if (std::ssize(rails) > kMostRail + 1) {
    mistake(rails, fmt::format("more than {} rails", kMostRail + 1));
    return machine;
  }
  Machine::Parts parts = machine->parts();
  for (Device& d : parts.devices) d.rail.reset();
  int rail = 0;
  for (const toml::node& entry : rails) {
    if (const toml::array* const several = entry.as_array()) {
      for (const toml::node& port : *several) put_on_rail(port, rail, parts);
    } else {
      put_on_rail(entry, rail, parts);
    }
    rail++;
  }
  if (status_) complete_rails(parts);
  return std::make_shared<const Machine>(std::move(parts));
}

// Ports that were not listed, but serve GPUs.
void Reader::complete_rails(Machine::Parts& parts) {
  const Machine machine(parts);
  if (!paths_fit(machine)) return;
  std::vector<std::string_view> unlisted;
  for (const Rails::Port& port : match_rails(machine).ports) {
    Device& d = parts.devices[port.device];
    if (!port.rail || d.rail) continue;
    d.rail = known(static_cast<int>(*port.rail), Provenance::assumed);
    unlisted.push_back(d.label);
  }
  if (!unlisted.empty())
    parts.gaps.push_back({"ports",
                          fmt::format("the rail of {} is not told", some_of(unlisted, kMostNamed)),
                          "those that are free, in the order of the GPUs that they serve"});
}

void Reader::put_on_rail(const toml::node& node, int rail, Machine::Parts& parts) {
  const auto name = node.value<std::string>();
  if (!name) return mistake(node, "'rails' must list names of ports, as \"mlx5_0\"");
  std::vector<std::string_view> ports;
  for (Device& d : parts.devices) {
    if (d.kind != DeviceKind::port) continue;
    ports.push_back(d.label);
    if (d.label != *name && d.identity.name != *name) continue;
    if (d.rail)
      return mistake(node, fmt::format("port {} is on rail {} already", *name, d.rail->value));
    d.rail = known(rail, Provenance::file);
    return;
  }
  mistake(node,
          fmt::format("{} has no port '{}'; it has {}", parts.name, *name, fmt::join(ports, ", ")));
}

void Reader::give_domains(const toml::table& in, size_t first) {
  const std::span<Host> hosts(topology_.hosts.begin() + static_cast<ptrdiff_t>(first),
                              topology_.hosts.end());
  const auto together = number_if_any<int64_t>(in, "hosts_per_domain", 1, kMostHosts);
  if (!in.contains("domain")) {
    if (together) return mistake(in, "'hosts_per_domain' needs 'domain'");
    if (!hosts.empty() && hosts[0].machine->hosts_in_domain() > 1)
      topology_.gaps.push_back(
          {hosts[0].name, "how NVLink domains are made of such hosts",
           fmt::format("each {} in a row", hosts[0].machine->hosts_in_domain())});
    return assume_domains(hosts, hosts.empty() ? "" : hosts[0].machine->name());
  }
  const auto pattern = need<std::string>(in, "domain");
  const size_t each = together ? static_cast<size_t>(*together) : hosts.size();
  const size_t most = hosts.empty() ? 1 : hosts[0].machine->hosts_in_domain();
  if (status_ && most > 1 && each > most)
    return mistake(in, fmt::format("an NVLink domain of {} hosts, where {} joins at most {}", each,
                                   hosts[0].machine->name(), most));
  if (status_ && each < hosts.size() && !has(pattern, "{group}"))
    return mistake(in, "'domain' needs {group} in it, since the hosts are of several");
  for (size_t i = 0; i < hosts.size() && status_; i++) {
    hosts[i].domain = fill(pattern, "group", std::to_string(i / each));
    if (hosts[i].machine->count(DeviceKind::nvswitch) == 0)
      mistake(in, fmt::format("{} has no NVSwitch to share in domain {}", hosts[i].name,
                              hosts[i].domain));
  }
}

// Ports of a Machine that tells no rails are on one each, in their order.
void Reader::assume_rails() {
  std::map<MachinePointer, MachinePointer> railed;
  for (Host& host : topology_.hosts) {
    MachinePointer& with = railed[host.machine];
    const auto is_told = [](const Device& d) { return d.rail.has_value(); };
    if (!with && std::ranges::any_of(host.machine->devices(), is_told)) with = host.machine;
    if (!with) {
      Machine::Parts parts = host.machine->parts();
      int rail = 0;
      for (Device& d : parts.devices)
        if (d.kind == DeviceKind::port) d.rail = known(rail++, Provenance::assumed);
      parts.gaps.push_back({"ports", "on which rails they are is not known", "in their order"});
      with = std::make_shared<const Machine>(std::move(parts));
    }
    host.machine = with;
  }
}

Reader::Row Reader::row(const toml::table& in) {
  Row row{need<std::string>(in, "name"), names(in, "hosts"), {}, 0};
  const auto each = number_if_any<int64_t>(in, "hosts_per_leaf", 1, kMostHosts);
  row.hosts_per_leaf = each ? static_cast<size_t>(*each) : std::max<size_t>(1, row.hosts.size());
  const toml::array& rails = list(in, "rails");
  if (rails.empty()) mistake(in, "'rails' is needed, as [0, 1]");
  for (const toml::node& node : rails) {
    const auto rail = node.value_exact<int64_t>().value_or(-1);
    if (rail < 0 || rail > kMostRail)
      mistake(node, fmt::format("'rails' must hold numbers from 0 to {}", kMostRail));
    row.rails.push_back(rail);
  }
  if (row.hosts_per_leaf < row.hosts.size() && !has(row.name, "{group}"))
    mistake(in, "'name' needs {group} in it, since the hosts are on several leaves");
  return row;
}

void Reader::read_leaves(const toml::table& in) {
  allow(in, "[[leaves]]", {"name", "hosts", "rails", "hosts_per_leaf"});
  const Row leaves = row(in);
  for (size_t i = 0; i < leaves.hosts.size() && status_; i++) {
    const auto found = host_.find(leaves.hosts[i]);
    if (found == host_.end())
      return mistake(in, fmt::format("no [[hosts]] lists host {}", leaves.hosts[i]));
    const std::string group = fill(leaves.name, "group", std::to_string(i / leaves.hosts_per_leaf));
    for (const int64_t rail : leaves.rails)
      cable(in, topology_.hosts[found->second], rail, fill(group, "rail", std::to_string(rail)));
  }
}

uint32_t Reader::leaf(const std::string& name, int64_t rail) {
  const auto own = static_cast<uint32_t>(rail);
  const auto next = static_cast<uint32_t>(topology_.leaves.size());
  const auto [found, is_new] = leaf_.emplace(name, next);
  if (is_new) topology_.leaves.push_back({name, own});
  Leaf& leaf = topology_.leaves[found->second];
  if (leaf.rail && *leaf.rail != own) {
    topology_.gaps.push_back(
        {name, fmt::format("is a leaf of rails {} and {}", *leaf.rail, own), "that it joins them"});
    leaf.rail.reset();
  }
  return found->second;
}

void Reader::cable(const toml::node& at, Host& host, int64_t rail, const std::string& name) {
  const auto ports = host.machine->of_kind(DeviceKind::port);
  host.leaves.resize(ports.size(), kNoLeaf);
  bool any = false;
  for (size_t i = 0; i < ports.size(); i++) {
    const auto& own = host.machine->devices()[ports[i]].rail;
    if (!own || own->value != rail) continue;
    any = true;
    const uint32_t to = leaf(name, rail);
    if (host.leaves[i] != kNoLeaf && host.leaves[i] != to)
      mistake(at, fmt::format("rail {} of {} is cabled to {} and to {}", rail, host.name,
                              topology_.leaves[host.leaves[i]].name, name));
    host.leaves[i] = to;
  }
  if (!any) mistake(at, fmt::format("{} has no port on rail {}", host.name, rail));
}

// Ports on a rail that no leaf has.
void Reader::say_what_is_loose() {
  std::vector<const Host*> loose;
  for (const Host& host : topology_.hosts) {
    const auto ports = host.machine->of_kind(DeviceKind::port);
    for (size_t i = 0; i < ports.size(); i++)
      if (host.machine->devices()[ports[i]].rail &&
          (host.leaves.empty() || host.leaves[i] == kNoLeaf)) {
        loose.push_back(&host);
        break;
      }
  }
  if (loose.empty()) return;
  const std::string others =
      loose.size() == 1 ? "" : fmt::format(", nor for {} more hosts", loose.size() - 1);
  topology_.gaps.push_back(
      {loose[0]->name, "to which leaf its ports on rails are cabled is not told" + others, ""});
}

Result<Topology> read_cluster_table(const toml::table& root, const std::string& source) {
  return Reader(source).read(root);
}

}  // namespace

Result<Topology> read_cluster_toml(std::string_view text, std::string source) {
  return parse_toml(text,
                    [&](const toml::table& root) { return read_cluster_table(root, source); });
}

Result<Topology> read_toml(std::string_view text, std::string source) {
  return parse_toml(text, [&](const toml::table& root) -> Result<Topology> {
    if (root.contains("hosts")) return read_cluster_table(root, source);
    auto machine = read_machine_table(root, source);
    if (!machine) return pass(machine);
    return single_host(std::move(*machine));
  });
}

}  // namespace crosstie
