// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "topology/check_machine.h"

namespace crosstie {
namespace {

bool is_near(PathClass type) { return type <= PathClass::pxb || type == PathClass::p2c; }

struct Nvlinks {
  uint32_t count = 0;
  bool to_switches = false;
};

std::map<uint32_t, Nvlinks> nvlinks_of(const Suspect& suspect) {
  std::map<uint32_t, Nvlinks> out;
  for (const uint32_t gpu : suspect.gpus) out[gpu];
  for (const Link& link : suspect.machine.links())
    for (const auto& [end, other] : {std::pair(link.a, link.b), {link.b, link.a}})
      if (const auto own = out.find(end); own != out.end() && link.type == LinkType::nvlink) {
        own->second.count += link.count;
        own->second.to_switches |= suspect.device(other).kind == DeviceKind::nvswitch;
      }
  return out;
}

struct Nearest {
  PathClass type = PathClass::dis;
  std::vector<uint32_t> ports{};  // of the best class, and of these those with the most bandwidth
};

Nearest nearest(const Suspect& suspect, uint32_t gpu) {
  Nearest best;
  Bandwidth most{};
  for (const uint32_t port : suspect.usable) {
    const Path path = suspect.paths.between(gpu, port);
    if (path.type > best.type || (path.type == best.type && path.bandwidth < most)) continue;
    if (path.type < best.type || path.bandwidth > most) best.ports.clear();
    best.type = path.type;
    most = path.bandwidth;
    best.ports.push_back(port);
  }
  return best;
}

// Every GPU and NIC by itself on the CPU: as VMs show it, and as some boards are built.
bool all_alike(const Suspect& suspect) {
  if (suspect.gpus.size() < 2 || suspect.usable.size() < 2) return false;
  const PathClass type = suspect.paths.between(suspect.gpus[0], suspect.usable[0]).type;
  if (is_near(type)) return false;
  for (const uint32_t gpu : suspect.gpus)
    for (const uint32_t port : suspect.usable)
      if (suspect.paths.between(gpu, port).type != type) return false;
  return true;
}

// Makers of devices that hypervisors emulate: QEMU (two), VMware, Microsoft, Xen.
constexpr std::array<uint16_t, 5> kHypervisors = {0x1af4, 0x1b36, 0x15ad, 0x1414, 0x5853};

// Whether any device is of a hypervisor's making.
bool is_virtual_machine(const Suspect& suspect) {
  return std::ranges::any_of(suspect.machine.devices(), [](const Device& d) {
    return d.pci_ids && (std::ranges::count(kHypervisors, d.pci_ids->value.vendor) > 0 ||
                         std::ranges::count(kHypervisors, d.pci_ids->value.subsystem_vendor) > 0);
  });
}

void report_all_alike(Suspect& suspect) {
  const bool is_vm = is_virtual_machine(suspect);
  suspect.find(is_vm ? Severity::warning : Severity::note, "all-alike", {},
               "every GPU is as far from every NIC",
               fmt::format("{} for all of {} GPUs and {} ports",
                           name(suspect.paths.between(suspect.gpus[0], suspect.usable[0]).type),
                           suspect.gpus.size(), suspect.usable.size()),
               fmt::format("{} the PCIe switches; `crosstie topo make-xml` writes a file with them",
                           is_vm ? "this VM hides" : "if this is a VM, it may hide"));
}

using NearestOf = std::map<uint32_t, Nearest>;

void check_far(Suspect& suspect, const NearestOf& nearest_of) {
  const bool some_are_near =
      std::ranges::any_of(nearest_of, [](const auto& n) { return is_near(n.second.type); });
  for (const auto& [gpu, nearest] : nearest_of)
    if (!is_near(nearest.type) && !nearest.ports.empty())
      suspect.find(some_are_near ? Severity::warning : Severity::note, "no-near-nic", {gpu},
                   "no NIC is behind a PCIe switch with it",
                   fmt::format("the nearest, {}, is {}", suspect.device(nearest.ports[0]).label,
                               name(nearest.type)),
                   "see whether a slot behind its switch is free for one; in a VM tell the "
                   "switches in an overlay (topo make-xml --overlay)");
}

// Where each takes its nearest, one port has too many, and one that could serve has none.
void check_crowded(Suspect& suspect, const NearestOf& nearest_of) {
  std::map<uint32_t, std::vector<uint32_t>> crowds;
  std::set<uint32_t> wanted;
  for (const auto& [gpu, nearest] : nearest_of) {
    wanted.insert(nearest.ports.begin(), nearest.ports.end());
    if (nearest.ports.size() == 1) crowds[nearest.ports[0]].push_back(gpu);
  }
  std::vector<std::string> unwanted;
  for (const Rails::Port& port : suspect.rails.ports)
    if (!port.gpus.empty() && !wanted.contains(port.device))
      unwanted.push_back(suspect.device(port.device).label);
  for (const auto& [port, gpus] : crowds) {
    if (gpus.size() < 2 || unwanted.empty()) continue;
    suspect.find(
        Severity::warning, "nic-crowded", gpus,
        fmt::format("are nearest to the same port, {}", suspect.device(port).label),
        fmt::format("nearest to none: {}", fmt::join(unwanted, ", ")),
        "what goes by the nearest leaves ports idle; matching over the whole host does not");
  }
}

}  // namespace

void check_nvlinks(Suspect& suspect) {
  const auto nvlinks = nvlinks_of(suspect);
  std::map<std::string, uint32_t> most;
  for (const auto& [gpu, own] : nvlinks) {
    uint32_t& so_far = most[kind_of(suspect.device(gpu))];
    so_far = std::max(so_far, own.count);
  }
  const bool switched =
      std::ranges::any_of(nvlinks, [](const auto& of_gpu) { return of_gpu.second.to_switches; });
  for (const auto& [gpu, own] : nvlinks) {
    const uint32_t peers = most[kind_of(suspect.device(gpu))];
    if (own.count < peers)
      suspect.find(switched ? Severity::error : Severity::warning, "nvlink-missing", {gpu},
                   own.count == 0 ? "has no NVLinks, where its peers have"
                                  : "has fewer NVLinks than its peers",
                   fmt::format("{} of {}", own.count, peers),
                   "see `nvidia-smi nvlink -s`; reset or replace the GPU, or its bridge");
  }
}

void check_distances(Suspect& suspect) {
  if (all_alike(suspect)) return report_all_alike(suspect);
  NearestOf nearest_of;
  for (const uint32_t gpu : suspect.gpus) nearest_of.emplace(gpu, nearest(suspect, gpu));
  check_far(suspect, nearest_of);
  check_crowded(suspect, nearest_of);
}

void check_refusals(Suspect& suspect) {
  for (const Refusal& refusal : suspect.machine.refusals())
    suspect.find(Severity::warning, "peer-refused", {refusal.a},
                 fmt::format("peer-to-peer with {} is refused", suspect.device(refusal.b).label),
                 refusal.why.empty() ? "the driver gives no reason" : refusal.why,
                 "see `nvidia-smi topo -p2p r`; until then rings must keep them apart");
}

}  // namespace crosstie
