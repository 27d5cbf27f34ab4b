// SPDX-License-Identifier: Apache-2.0
#include "topology/domain.h"

#include <set>

#include "topology/cluster.h"
#include "topology/replay.h"

namespace crosstie {
namespace {

using Hosts = std::vector<const Host*>;

Hosts hosts_of(const Topology& topology, std::string_view domain) {
  Hosts hosts;
  for (const Host& host : topology.hosts)
    if (host.domain == domain) hosts.push_back(&host);
  return hosts;
}

Status check_switches(const Hosts& hosts) {
  for (const Host* host : hosts) {
    const uint32_t own = host->machine->count(DeviceKind::nvswitch);
    const uint32_t first = hosts[0]->machine->count(DeviceKind::nvswitch);
    if (own == 0 && hosts.size() > 1)
      return fail(Code::invalid, "{} has no NVSwitch that could join it to the NVLink domain {}",
                  host->name, host->domain);
    if (own != first)
      return fail(Code::invalid, "{} has {} NVSwitches where {} of the same NVLink domain has {}",
                  host->name, own, hosts[0]->name, first);
  }
  return {};
}

class Fusion {
 public:
  explicit Fusion(Builder& builder) : builder_(builder) {}

  // UUIDs of a Machine that is also another host's would make one device of two.
  void add(const Host& host, bool shared) {
    size_t next_switch = 0;
    const auto seen = replay(*host.machine, builder_,
                             {[&](uint32_t index, Device& device) {
                                if (shared) device.identity.uuid.clear();
                                take_unit(host, index, device);
                                device.host = number_;
                                if (device.kind != DeviceKind::nvswitch) return true;
                                return join_switch(next_switch++, device);
                              },
                              [](const Gap&) { return true; }, host.name + "/"});
    link_switches(*host.machine, seen);
    number_++;
  }

 private:
  void take_unit(const Host& host, uint32_t index, Device& device) {
    for (const Unit& unit : host.units)
      if (unit.device == index) wear(unit, device);
  }

  // Of the NVSwitches those of the first host stay, as of no host in particular.
  bool join_switch(size_t k, Device& device) {
    if (k < switches_.size()) return false;
    device.parent = kNoDevice;
    device.label = fmt::format("nvswitch{}", k);
    device.host = 0;
    switches_.push_back(builder_.see(device));
    return false;
  }

  void link_switches(const Machine& machine, const std::vector<uint32_t>& seen) {
    std::vector<uint32_t> switch_of(seen.size(), kNoDevice);
    for (uint32_t i = 0, k = 0; i < seen.size(); i++)
      if (machine.devices()[i].kind == DeviceKind::nvswitch) switch_of[i] = switches_[k++];
    for (const Link& link : machine.links()) {
      const bool to_switch = switch_of[link.b] != kNoDevice,
                 from_switch = switch_of[link.a] != kNoDevice;
      if (to_switch == from_switch || link.type == LinkType::pci) continue;
      const uint32_t gpu = seen[to_switch ? link.a : link.b];
      const uint32_t hub = switch_of[to_switch ? link.b : link.a];
      builder_.link(gpu, hub, {link.type, link.count, link.bandwidth});
    }
    for (const Link& link : machine.nccl_links())
      if (const uint32_t hub = switch_of[link.b]; hub != kNoDevice && seen[link.a] != kNoDevice)
        builder_.nccl_takes({seen[link.a], hub, link.type, link.count, link.bandwidth});
  }

  Builder& builder_;
  uint32_t number_ = 0;
  std::vector<uint32_t> switches_;
};

}  // namespace

void assume_domains(std::span<Host> hosts, std::string_view name) {
  for (size_t i = 0; i < hosts.size(); i++)
    if (const uint32_t together = hosts[i].machine->hosts_in_domain();
        together > 1 && hosts[i].domain.empty())
      hosts[i].domain = fmt::format("{}-domain{}", name, i / together);
}

Result<Machine> fuse(const Topology& topology, std::string_view domain) {
  const Hosts hosts = hosts_of(topology, domain);
  if (domain.empty() || hosts.empty())
    return fail(Code::missing, "no host is in an NVLink domain '{}'", domain);
  if (const Status right = check_switches(hosts); !right) return pass(right);
  std::map<const Machine*, size_t> uses;
  for (const Host* host : hosts) uses[host->machine.get()]++;
  Builder builder(std::string(domain), hosts[0]->machine->source());
  Fusion fusion(builder);
  for (const Host* host : hosts) fusion.add(*host, uses[host->machine.get()] > 1);
  return std::move(builder).build();
}

}  // namespace crosstie
