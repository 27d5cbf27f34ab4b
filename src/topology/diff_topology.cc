// SPDX-License-Identifier: Apache-2.0
// Topologies host by host. Hosts that share a machine are compared once.
#include <algorithm>
#include <map>

#include "topology/diff.h"
#include "topology/diff_pairing.h"

namespace crosstie {
namespace {

using HostPair = std::pair<const Host*, const Host*>;

void list_missing(const Topology& in, const std::map<std::string_view, const Host*>& other,
                  bool is_first, std::vector<Difference>& out) {
  for (const Host& host : in.hosts) {
    if (other.contains(host.name)) continue;
    Difference difference{.kind = DifferenceKind::host, .device = host.name, .what = "host"};
    (is_first ? difference.first : difference.second) = "there";
    out.push_back(difference);
  }
}

std::map<std::string_view, const Host*> by_name(const Topology& topology) {
  std::map<std::string_view, const Host*> out;
  for (const Host& host : topology.hosts) out.emplace(host.name, &host);
  return out;
}

// Those that are in one only are listed.
std::vector<HostPair> pair_hosts(const Topology& first, const Topology& second,
                                 std::vector<Difference>& out) {
  const auto names = by_name(first), others = by_name(second);
  std::vector<HostPair> pairs;
  for (const Host& host : first.hosts)
    if (const auto found = others.find(host.name); found != others.end())
      pairs.emplace_back(&host, found->second);
  if (!pairs.empty() || first.hosts.size() != second.hosts.size()) {
    list_missing(first, others, true, out);
    list_missing(second, names, false, out);
    return pairs;
  }
  for (size_t i = 0; i < first.hosts.size(); i++)
    pairs.emplace_back(&first.hosts[i], &second.hosts[i]);
  return pairs;
}

// By each port, in the order of the machine.
std::vector<std::string> leaf_names(const Topology& topology, const Host& host) {
  std::vector<std::string> names;
  for (const uint32_t leaf : host.leaves)
    names.push_back(leaf == kNoLeaf ? std::string() : topology.leaves[leaf].name);
  return names;
}

void compare_cables(const Topology& first, const Topology& second, const HostPair& hosts,
                    std::vector<Difference>& out) {
  const auto before = leaf_names(first, *hosts.first), after = leaf_names(second, *hosts.second);
  if (before.empty() || after.empty()) return;
  const Pairing pairing(*hosts.first->machine, *hosts.second->machine);
  std::map<uint32_t, std::string> after_by_device;
  const auto others = hosts.second->machine->devices();
  for (uint32_t i = 0, port = 0; i < others.size() && port < after.size(); i++)
    if (others[i].kind == DeviceKind::port) after_by_device.emplace(i, after[port++]);
  const auto devices = hosts.first->machine->devices();
  for (uint32_t i = 0, port = 0; i < devices.size() && port < before.size(); i++) {
    if (devices[i].kind != DeviceKind::port) continue;
    const std::string& one = before[port++];
    const auto other = after_by_device.find(pairing.in_second(i));
    if (other == after_by_device.end() || one == other->second) continue;
    out.push_back({.kind = DifferenceKind::path,
                   .hosts = {hosts.first->name},
                   .device = devices[i].label,
                   .what = "leaf",
                   .first = one,
                   .second = other->second});
  }
}

void compare_domains(const HostPair& hosts, std::vector<Difference>& out) {
  const auto& [first, second] = hosts;
  if (!first->domain.empty() && !second->domain.empty() && first->domain != second->domain)
    out.push_back({.kind = DifferenceKind::link,
                   .device = first->name,
                   .what = "NVLink domain",
                   .first = first->domain,
                   .second = second->domain});
}

}  // namespace

std::vector<Difference> diff(const Topology& first, const Topology& second) {
  std::vector<Difference> out;
  const auto pairs = pair_hosts(first, second, out);
  std::map<std::pair<const Machine*, const Machine*>, std::vector<std::string>> seen;
  std::vector<std::pair<const Machine*, const Machine*>> order;
  for (const auto& [one, other] : pairs) {
    const std::pair machines{one->machine.get(), other->machine.get()};
    auto& hosts = seen[machines];
    if (hosts.empty()) order.push_back(machines);
    hosts.push_back(one->name);
    compare_domains({one, other}, out);
    compare_cables(first, second, {one, other}, out);
  }
  for (const auto& machines : order) {
    if (machines.first == machines.second) continue;
    for (Difference& difference : diff(*machines.first, *machines.second)) {
      if (first.hosts.size() > 1) difference.hosts = seen[machines];
      out.push_back(std::move(difference));
    }
  }
  std::ranges::stable_sort(out, {}, &Difference::kind);
  return out;
}

}  // namespace crosstie
