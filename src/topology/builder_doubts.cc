// SPDX-License-Identifier: Apache-2.0
// What a source tells and cannot be so. The Machine holds what is likely instead; what NCCL, which
// believes its sources, will count with is kept beside it, and a gap says both.
#include <algorithm>

#include "topology/builder.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

// PCIe 2. Bridges made of software tell this or less, whatever they join.
constexpr double kSlowestBridge = 5;
// Two generations. Hosts do mix neighbouring ones: a PCIe 4 GPU in a PCIe 3 slot is real.
constexpr double kTooSteep = 3;

}  // namespace

// The port's slip is one of unit: kb/s where Mb/s are asked for.
void Builder::doubt_line_rates() {
  for (uint32_t i = 0; i < devices_.size(); i++) {
    Device& d = devices_[i];
    if (d.kind != DeviceKind::port || d.line_rate->value <= kMostLineRate) continue;
    const Bandwidth told = d.line_rate->value;
    d.line_rate = known(Bandwidth{told.bytes_per_second / 1000}, Provenance::assumed);
    parts_.nccl_links.push_back({d.parent, i, LinkType::net, 1, known(told, Provenance::file)});
    gap(i, fmt::format("tells {}, more than any port has; NCCL believes it", to_text(told)),
        fmt::format("{}, a thousandth", to_text(d.line_rate->value)), GapAbout::line_rate);
  }
}

// Of every device the fastest and widest that is told by what it contains.
std::vector<Builder::Beneath> Builder::beneath_bridges() const {
  std::vector<Beneath> out(devices_.size());
  for (const Device& d : devices_) {
    if (!is_told(d.pcie_speed)) continue;
    const Bandwidth own = pcie_bandwidth(d.pcie_speed->value, d.pcie_lanes->value);
    for (uint32_t above = d.parent; above != kNoDevice; above = devices_[above].parent) {
      out[above].speed = std::max(out[above].speed, d.pcie_speed->value);
      out[above].widest = std::max(out[above].widest, own);
    }
  }
  return out;
}

void Builder::doubt_pcie_speeds(const std::vector<Link>& links) {
  for (const Link& link : links) {
    const Device& d = devices_[link.b];
    const std::string* const words = pcie_speed_unknown_to_nccl(d);
    if (link.type != LinkType::pci || words == nullptr) continue;
    const Bandwidth believed = pcie_bandwidth(kAssumedPcieSpeed, d.pcie_lanes->value);
    nccl_takes({link.a, link.b, link.type, 1, known(believed, Provenance::assumed)});
    gap(link.b,
        fmt::format("tells a PCIe speed of \"{}\", which NCCL does not know: it counts with {}",
                    *words, pcie_text(kAssumedPcieSpeed, d.pcie_lanes->value)),
        {}, GapAbout::pcie_link);
  }
}

void Builder::doubt_bridges(std::vector<Link>& links) {
  const auto beneath = beneath_bridges();
  std::vector<Link*> above;  // emulated bridges
  std::set<uint32_t> bridges;
  for (Link& link : links) {
    const Device& d = devices_[link.b];
    if (link.type != LinkType::pci || d.kind != DeviceKind::pci_switch || !is_told(d.pcie_speed))
      continue;
    const double speed = d.pcie_speed->value;
    if (speed > kSlowestBridge || beneath[link.b].speed < kTooSteep * speed) continue;
    above.push_back(&link);
    bridges.insert(link.b);
  }
  std::erase_if(gaps_, [&](const OpenGap& open) {  // what was assumed of them otherwise
    return open.gap.about == GapAbout::pcie_link && !open.gap.assumed.empty() &&
           bridges.contains(open.device);
  });
  for (Link* const link : above) {
    const auto& [speed, widest] = beneath[link->b];
    const std::string believed =
        nccl_takes(*link)
            ? fmt::format("; NCCL believes it and counts with {}", to_text(link->bandwidth->value))
            : "";
    gap(link->b,
        fmt::format(
            "tells {} with {:g} GT/s beneath it, as emulated bridges do{}",
            pcie_text(devices_[link->b].pcie_speed->value, devices_[link->b].pcie_lanes->value),
            speed, believed),
        fmt::format("{}, as beneath it", to_text(widest)), GapAbout::pcie_link);
    link->bandwidth = known(widest, Provenance::assumed);
  }
}

bool Builder::is_direct(const Link& link) const {
  return link.type == LinkType::nvlink && devices_[link.a].kind == DeviceKind::gpu &&
         devices_[link.b].kind == DeviceKind::gpu;
}

// Those that tell more NVLinks than their kind has; each gets its gap.
std::vector<bool> Builder::crowded_gpus(const std::vector<Link>& links) {
  std::vector<uint32_t> told(devices_.size());
  for (const Link& link : links)
    if (link.type == LinkType::nvlink)
      for (const uint32_t end : {link.a, link.b}) told[end] += link.count;
  std::vector<bool> crowded(devices_.size());
  for (uint32_t i = 0; i < devices_.size(); i++) {
    const auto& capability = devices_[i].compute_capability;
    const uint32_t most = most_nvlinks(capability ? capability->value : 0);
    crowded[i] = devices_[i].kind == DeviceKind::gpu && told[i] > most;
    if (crowded[i])
      gap(i,
          fmt::format("tells {} NVLinks where a GPU of its kind has {}; NCCL believes it", told[i],
                      most),
          "", GapAbout::gpu_link);
  }
  return crowded;
}

// GPUs behind NVSwitches that are hidden, as in VMs, list all their links to each of their peers.
void Builder::doubt_nvlinks(std::vector<Link>& links) {
  const auto crowded = crowded_gpus(links);
  std::vector<uint32_t> peers(devices_.size());
  for (const Link& link : links)
    if (is_direct(link)) peers[link.a]++, peers[link.b]++;
  std::vector<bool> switched(devices_.size());
  for (uint32_t i = 0; i < devices_.size(); i++) switched[i] = crowded[i] && peers[i] > 1;
  put_switch_between(switched, links);
}

void Builder::put_switch_between(const std::vector<bool>& gpus, std::vector<Link>& links) {
  const auto shared = std::ranges::stable_partition(
      links, [&](const Link& l) { return !(is_direct(l) && gpus[l.a] && gpus[l.b]); });
  if (shared.empty()) return;
  std::map<uint32_t, Link> bundles;  // by GPU: its widest
  for (const Link& link : shared)
    for (const uint32_t gpu : {link.a, link.b})
      if (Link& own = bundles.try_emplace(gpu, link).first->second; own.count < link.count)
        own = link;
  parts_.nccl_links.insert(parts_.nccl_links.end(), shared.begin(), shared.end());
  links.erase(shared.begin(), shared.end());
  const uint32_t hidden = see({.kind = DeviceKind::nvswitch});
  gap(hidden, "is not described; its GPUs list all their links to each other", "one NVSwitch");
  for (const auto& [gpu, bundle] : bundles) {
    links.push_back({gpu, hidden, LinkType::nvlink, bundle.count, bundle.bandwidth});
    parts_.nccl_links.push_back({gpu, hidden, LinkType::nvlink, bundle.count, {}});
  }
}

}  // namespace crosstie
