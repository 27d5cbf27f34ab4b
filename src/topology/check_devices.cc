// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "topology/check_machine.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

// By how much a bridge may tell a slower link than what is behind it before that is odd.
constexpr double kOddBridge = 4;

constexpr const char* kGivePcie =
    "give gt_s and lanes of its [[device]] in an overlay (topo make-xml --overlay)";
constexpr const char* kGiveRate =
    "give gigabits_per_second of its NIC's [[device]] in an overlay (topo make-xml --overlay)";

// What the lanes carry, before headers.
Bandwidth raw_pcie(double gigatransfers, int lanes) {
  const double coding = gigatransfers <= 5 ? 0.8 : 128.0 / 130;
  return gigabits(gigatransfers * coding * lanes);
}

void check_training(Suspect& suspect, uint32_t i) {
  const Device& d = suspect.device(i);
  constexpr const char* kReseat =
      "reseat the card or its riser, and look for PCIe errors in the kernel's log";
  if (d.pcie_lanes && d.pcie_lanes_now && d.pcie_lanes_now->value < d.pcie_lanes->value)
    suspect.find(Severity::error, "pcie-width", {i}, "its PCIe link has lost lanes",
                 fmt::format("x{} of x{}", d.pcie_lanes_now->value, d.pcie_lanes->value), kReseat);
  // An idle GPU lowers its own speed.
  if (d.kind != DeviceKind::nic || !d.pcie_speed || !d.pcie_speed_now) return;
  if (d.pcie_speed_now->value < d.pcie_speed->value)
    suspect.find(Severity::error, "pcie-speed", {i}, "its PCIe link is slower than it can be",
                 fmt::format("{:g} of {:g} GT/s", d.pcie_speed_now->value, d.pcie_speed->value),
                 kReseat);
}

void check_readable(Suspect& suspect, uint32_t i) {
  const Device& d = suspect.device(i);
  if (!d.pcie_speed) return;
  const std::string* const words = pcie_speed_unknown_to_nccl(d);
  const std::string to_nccl =
      words == nullptr ? ", as NCCL does"
                       : fmt::format("; NCCL does not know \"{}\" and takes it for {}", *words,
                                     pcie_text(kAssumedPcieSpeed, d.pcie_lanes->value));
  const std::string taken = pcie_text(d.pcie_speed->value, d.pcie_lanes->value);
  if (!is_told(d.pcie_speed) || !is_told(d.pcie_lanes))
    suspect.find(Severity::warning, "pcie-unknown", {i},
                 "the speed or width of its PCIe link cannot be read",
                 fmt::format("taken for {}{}", taken, to_nccl), kGivePcie);
  else if (words != nullptr)
    suspect.find(Severity::warning, "pcie-unknown", {i}, "NCCL does not know its PCIe speed",
                 fmt::format("\"{}\"; NCCL takes it for {}", *words,
                             pcie_text(kAssumedPcieSpeed, d.pcie_lanes->value)),
                 kGivePcie);
}

// Each bridge is told of once, by the first device behind it that says so.
void check_bridge(Suspect& suspect, uint32_t i, std::set<uint32_t>& told) {
  const Device& d = suspect.device(i);
  if (d.parent == kNoDevice || !d.pcie_speed || !d.pcie_lanes) return;
  const Device& bridge = suspect.device(d.parent);
  if (bridge.kind != DeviceKind::pci_switch || !bridge.pcie_speed || !bridge.pcie_lanes) return;
  const Bandwidth below = pcie_bandwidth(d.pcie_speed->value, d.pcie_lanes->value);
  const Bandwidth above = pcie_bandwidth(bridge.pcie_speed->value, bridge.pcie_lanes->value);
  if (below.bytes_per_second < kOddBridge * above.bytes_per_second) return;
  if (!told.insert(d.parent).second) return;
  suspect.find(
      Severity::warning, "pcie-bridge", {d.parent},
      "tells a far slower link than what is behind it",
      fmt::format("{}, above {}", pcie_text(bridge.pcie_speed->value, bridge.pcie_lanes->value),
                  pcie_text(d.pcie_speed->value, d.pcie_lanes->value)),
      kGivePcie);
}

// Wherever it is above them, NCCL counts with what it tells.
void check_believed_bridges(Suspect& suspect, std::set<uint32_t>& told) {
  for (const Link& believed : suspect.machine.nccl_links()) {
    if (believed.type != LinkType::pci || !believed.bandwidth ||
        pcie_speed_unknown_to_nccl(suspect.device(believed.b)) != nullptr)
      continue;
    const auto links = suspect.machine.links();
    const auto is = [&](const Link& link) {
      return link.a == believed.a && link.b == believed.b && link.type == LinkType::pci;
    };
    const auto link = std::ranges::find_if(links, is);
    if (link == links.end() || !link->bandwidth ||
        link->bandwidth->value <= believed.bandwidth->value || !told.insert(believed.b).second)
      continue;
    suspect.find(Severity::warning, "pcie-bridge", {believed.b},
                 "tells a far slower link than what is behind it",
                 fmt::format("NCCL counts with {}, beneath it are {}",
                             to_text(believed.bandwidth->value), to_text(link->bandwidth->value)),
                 kGivePcie);
  }
}

void check_line_rates(Suspect& suspect, uint32_t nic) {
  const Device& d = suspect.device(nic);
  if (!is_told(d.pcie_speed) || !is_told(d.pcie_lanes)) return;
  const double speed = (d.pcie_speed_now ? d.pcie_speed_now : d.pcie_speed)->value;
  const int lanes = (d.pcie_lanes_now ? d.pcie_lanes_now : d.pcie_lanes)->value;
  const Bandwidth pcie = raw_pcie(speed, lanes);
  Bandwidth fastest{}, all{};
  for (const uint32_t port : suspect.ports) {
    const Device& p = suspect.device(port);
    if (p.parent != nic || !is_told(p.line_rate)) continue;
    fastest = std::max(fastest, p.line_rate->value);
    all.bytes_per_second += p.line_rate->value.bytes_per_second;
  }
  const auto evidence = [&](Bandwidth rate) {
    return fmt::format("{} carries {}, below {}", pcie_text(speed, lanes), to_text(pcie),
                       to_text(rate));
  };
  if (fastest > pcie)
    suspect.find(Severity::warning, "pcie-below-line-rate", {nic},
                 "its PCIe link carries less than its port", evidence(fastest),
                 "put it in a slot with more or faster lanes");
  else if (all > pcie)
    suspect.find(Severity::note, "pcie-below-all-ports", {nic},
                 "its PCIe link carries less than its ports together", evidence(all),
                 "use one of them, or put it in a slot with more or faster lanes");
}

void check_acs(Suspect& suspect) {
  std::set<uint32_t> above;
  for (const auto* list : {&suspect.gpus, &suspect.nics})
    for (uint32_t i : *list)
      while ((i = suspect.device(i).parent) != kNoDevice) above.insert(i);
  for (const uint32_t i : above)
    if (const auto& acs = suspect.device(i).acs; acs && acs->value)
      suspect.find(Severity::warning, "acs", {i}, "access control (ACS) is on above GPUs or NICs",
                   "peer-to-peer traffic goes up to the CPU and down again",
                   "on bare metal turn it off in the firmware or with setpci; VMs need it");
}

void check_carrier(Suspect& suspect, uint32_t port) {
  const Device& d = suspect.device(port);
  if (!has_no_carrier(d)) return;
  const bool other_is_up = std::ranges::any_of(
      suspect.usable, [&](uint32_t other) { return suspect.device(other).parent == d.parent; });
  suspect.find(other_is_up ? Severity::note : Severity::warning, "no-carrier", {port},
               other_is_up ? "no carrier, but on another port of its NIC" : "no carrier",
               "its link is down", "check cable, transceiver and the switch's port");
}

// What was told where the Builder took another rate for true.
const Link* absurd_line_rate(const Suspect& suspect, uint32_t port) {
  const auto links = suspect.machine.nccl_links();
  const auto found = std::ranges::find_if(links, [&](const Link& link) {
    return link.type == LinkType::net && link.b == port && link.bandwidth &&
           link.bandwidth->value > kMostLineRate;
  });
  return found == links.end() ? nullptr : &*found;
}

// Its rate is reckoned from what it joins.
bool is_bond(const Suspect& suspect, uint32_t port) {
  return suspect.device(suspect.device(port).parent).bond_members.has_value();
}

void check_line_rate(Suspect& suspect, uint32_t port) {
  const Device& d = suspect.device(port);
  if (const Link* const told = absurd_line_rate(suspect, port))
    suspect.find(Severity::warning, "speed-absurd", {port}, "its speed cannot be true",
                 fmt::format("{:.0f} Gb/s", told->bandwidth->value.bytes_per_second * 8 / 1e9),
                 kGiveRate);
  else if (!is_told(d.line_rate) && !has_no_carrier(d) && !is_bond(suspect, port))
    suspect.find(Severity::warning, "speed-unknown", {port}, "its speed is not known",
                 fmt::format("taken for {}, as NCCL does", to_text(d.line_rate->value)), kGiveRate);
}

// By host and GUID, the cards that tell it: a card is all functions of one device.
using Cards = std::map<std::pair<uint32_t, uint64_t>, std::map<Bdf, std::vector<uint32_t>>>;

void add_card(const Suspect& suspect, Cards& cards, uint64_t guid, uint32_t nic) {
  const Device& d = suspect.device(nic);
  if (!d.identity.bdf || d.physical_function) return;
  Bdf card = *d.identity.bdf;
  card.function = 0;
  cards[{d.host, guid}][card].push_back(nic);
}

void report_cards(Suspect& suspect, const Cards& cards, std::string_view what) {
  for (const auto& [key, of] : cards) {
    if (of.size() < 2) continue;
    std::vector<uint32_t> nics;
    for (const auto& [card, functions] : of) nics.push_back(functions[0]);
    suspect.find(Severity::warning, "guid-shared", nics, fmt::format("tell the same {}", what),
                 fmt::format("0x{:016x}", key.second),
                 "here they are told apart by address; what goes by GUIDs takes them for one NIC");
  }
}

// GPUs, and NICs, of one model of which the PCIe link is told; not what files of hwloc tell, to
// which an idle GPU's link was slowed.
using Peers = std::map<std::pair<DeviceKind, std::string>, std::vector<uint32_t>>;

Peers pcie_peers(const Suspect& suspect) {
  Peers peers;
  for (const auto* list : {&suspect.gpus, &suspect.nics})
    for (const uint32_t i : *list) {
      const Device& d = suspect.device(i);
      const bool may_idle = d.kind == DeviceKind::gpu && d.pcie_speed_now &&
                            d.pcie_speed_now->from == Provenance::file;
      if (is_told(d.pcie_speed) && is_told(d.pcie_lanes) && !may_idle && !kind_of(d).empty())
        peers[{d.kind, kind_of(d)}].push_back(i);
    }
  return peers;
}

}  // namespace

void check_pcie(Suspect& suspect) {
  std::set<uint32_t> bridges;
  for (uint32_t i = 0; i < suspect.machine.devices().size(); i++) {
    const Device& d = suspect.device(i);
    const bool endpoint = (d.kind == DeviceKind::gpu && !suspect.machine.is_part(d)) ||
                          (d.kind == DeviceKind::nic && d.identity.bdf);
    if (!endpoint && d.kind != DeviceKind::pci_switch) continue;
    check_training(suspect, i);
    check_readable(suspect, i);
    if (endpoint) check_bridge(suspect, i, bridges);
    if (d.kind == DeviceKind::nic) check_line_rates(suspect, i);
  }
  check_believed_bridges(suspect, bridges);
  check_acs(suspect);
}

// Unlike most of its kind: in a lesser slot, or with lanes lost where a file tells no more than
// what is left.
void check_peers(Suspect& suspect) {
  const auto rate = [&](uint32_t i) {
    return raw_pcie(suspect.device(i).pcie_speed->value, suspect.device(i).pcie_lanes->value);
  };
  const auto text = [&](uint32_t i) {
    return pcie_text(suspect.device(i).pcie_speed->value, suspect.device(i).pcie_lanes->value);
  };
  for (const auto& [kind, peers] : pcie_peers(suspect))
    for (const uint32_t i : peers) {
      const auto better =
          std::ranges::count_if(peers, [&](uint32_t peer) { return rate(peer) > rate(i); });
      if (2 * better < std::ssize(peers)) continue;
      const uint32_t best = *std::ranges::max_element(peers, {}, rate);
      suspect.find(
          Severity::warning, "pcie-below-peers", {i},
          "its PCIe link carries less than those of most of its kind",
          fmt::format("{}, where {} has {}", text(i), suspect.device(best).label, text(best)),
          "see whether its slot is a lesser one; if not, reseat the card or its riser");
    }
}

// Network devices without a PCI function may be made of software, or be what NCCL merged of cards:
// those that serve a GPU will do.
void check_nics(Suspect& suspect) {
  const auto is_card = [](const Device& d) {
    return d.kind == DeviceKind::nic && (d.pcie_speed || d.identity.bdf);
  };
  const auto serves = [](const Rails::Port& port) { return !port.gpus.empty(); };
  if (!suspect.gpus.empty() && std::ranges::none_of(suspect.machine.devices(), is_card) &&
      std::ranges::none_of(suspect.rails.ports, serves))
    suspect.find(Severity::note, "no-nic", {}, "has GPUs and no NIC", "no other host is in reach",
                 "look in lspci for one without a driver; if it is a file, for one left out");
}

void check_ports(Suspect& suspect) {
  check_nics(suspect);
  for (const uint32_t port : suspect.ports) {
    const Device& d = suspect.device(port);
    check_carrier(suspect, port);
    check_line_rate(suspect, port);
    if (!has_no_carrier(d) && has_no_lid(d))
      suspect.find(Severity::error, "no-lid", {port}, "no LID", "no subnet manager has set it up",
                   "start one, or see why it does not answer");
  }
}

void check_guids(Suspect& suspect) {
  Cards nodes, cards, ports;
  for (const uint32_t nic : suspect.nics) {
    const Device& d = suspect.device(nic);
    if (d.node_guid)
      add_card(suspect, nodes, d.node_guid->value, nic);
    else if (d.sys_image_guid)
      add_card(suspect, cards, d.sys_image_guid->value, nic);
  }
  for (const uint32_t port : suspect.ports)
    if (const auto& guid = suspect.device(port).identity.guid)
      add_card(suspect, ports, *guid, suspect.device(port).parent);
  report_cards(suspect, nodes, "node GUID");
  report_cards(suspect, cards, "GUID of the card");
  report_cards(suspect, ports, "port GUID");
}

void check_cpus(Suspect& suspect) {
  if (suspect.machine.count(DeviceKind::numa) < 2) return;
  for (uint32_t i = 0; i < suspect.machine.devices().size(); i++) {
    const Device& d = suspect.device(i);
    if (d.kind != DeviceKind::numa || (d.cpu && sys_bandwidth(d.cpu->value))) continue;
    const std::string cpu =
        d.cpu ? fmt::format("{} {} family {} model {}", d.cpu->value.arch, d.cpu->value.vendor,
                            d.cpu->value.family, d.cpu->value.model)
              : "nothing tells its CPU";
    suspect.find(suspect.gpus.empty() ? Severity::note : Severity::warning, "cpu-unknown", {i},
                 "its CPU is not known, so that the speed between NUMA nodes is assumed", cpu,
                 d.cpu ? "see whether arch, vendor, familyid and modelid of its <cpu> are right"
                       : "give arch, vendor, familyid and modelid of its <cpu> in NCCL's XML");
  }
}

}  // namespace crosstie
