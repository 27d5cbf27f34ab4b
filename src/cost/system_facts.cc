// SPDX-License-Identifier: Apache-2.0
#include "cost/system_facts.h"

#include <algorithm>
#include <cmath>

#include "topology/path.h"
#include "topology/rails.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

// One way, of one link: signalling rates (NVIDIA's data sheets: 150, 300, 450, 900 GB/s of 6, 12,
// 18, 18 links; AMD's CDNA 3 white paper: 64 GB/s a link).
constexpr Bandwidth kNvlinkWire = gigabytes(25), kNvlink5Wire = gigabytes(50),
                    kXgmiWire = gigabytes(64);
// Of PCIe, after line coding, GT/s to bytes: 128/130 of a bit a transfer and lane.
Bandwidth pcie_wire(double gigatransfers, int lanes) {
  return gigabytes(gigatransfers * lanes / 8 * 128 / 130);
}

GpuLink nvlink_of(uint32_t compute_capability) {
  if (compute_capability >= 100) return GpuLink::nvlink5;
  if (compute_capability >= 90) return GpuLink::nvlink4;
  return compute_capability >= 80 ? GpuLink::nvlink3 : GpuLink::nvlink2;
}

// Links of a GPU to its peers, and whether they lead to switches.
struct Links {
  uint32_t nvlinks = 0, xgmi = 0;
  bool to_switch = false;
};

class Reader {
 public:
  explicit Reader(const Machine& machine)
      : machine_(machine),
        gpus_(machine.endpoints(DeviceKind::gpu)),
        paths_(machine, Paths::View::physical) {}

  Result<SystemFacts> read() {
    if (gpus_.empty()) return fail(Code::invalid, "{} has no GPU", machine_.name());
    read_cpu();
    read_gpus();
    read_nics();
    facts_.gpus = static_cast<uint32_t>(gpus_.size());
    join_nics();
    return facts_;
  }

 private:
  const Device& device(uint32_t index) const { return machine_.devices()[index]; }

  void read_cpu() {
    for (const uint32_t numa : machine_.of_kind(DeviceKind::numa))
      if (const auto& cpu = device(numa).cpu) return facts_.cpu = vendor_of(cpu->value), void();
  }
  static CpuVendor vendor_of(const CpuModel& cpu) {
    if (cpu.vendor == "GenuineIntel") return CpuVendor::intel;
    if (cpu.vendor == "AuthenticAMD") return CpuVendor::amd;
    return cpu.arch == "arm64" || cpu.arch == "aarch64" ? CpuVendor::arm : CpuVendor::other;
  }

  Links links_of(uint32_t gpu) const {
    Links links;
    for (const Link& link : machine_.links()) {
      if (link.a != gpu && link.b != gpu) continue;
      const uint32_t peer = link.a == gpu ? link.b : link.a;
      if (link.type == LinkType::nvlink) links.nvlinks += link.count;
      if (link.type == LinkType::xgmi) links.xgmi += link.count;
      links.to_switch |= device(peer).kind == DeviceKind::nvswitch;
    }
    return links;
  }

  void read_gpus() {
    facts_.gpu_wire = {HUGE_VAL};
    facts_.multicast = gpus_.size() > 1;
    for (const uint32_t gpu : gpus_) {
      const auto capability = device(gpu).compute_capability;
      const auto sm = static_cast<uint32_t>(capability ? capability->value : 0);
      facts_.compute_capability =
          facts_.compute_capability == 0 ? sm : std::min(facts_.compute_capability, sm);
      read_links(gpu, sm);
    }
  }

  void read_links(uint32_t gpu, uint32_t sm) {
    const bool part = machine_.is_part(device(gpu));
    const bool alone = machine_.has_no_peers(device(gpu));
    const Links links = alone ? Links{} : links_of(part ? device(gpu).parent : gpu);
    GpuLink kind = GpuLink::pcie;
    Bandwidth wire = pcie_of(part ? device(gpu).parent : gpu);
    if (links.nvlinks > 0) {
      kind = nvlink_of(sm);
      const Bandwidth one = kind == GpuLink::nvlink5 ? kNvlink5Wire : kNvlinkWire;
      wire = {one.bytes_per_second * links.nvlinks};
    } else if (links.xgmi > 0) {
      kind = part ? GpuLink::xgmi_partitions : GpuLink::xgmi;
      wire = {kXgmiWire.bytes_per_second * (part ? 1 : links.xgmi)};
    }
    facts_.multicast &= links.to_switch && sm >= 90;
    if (wire < facts_.gpu_wire) facts_.gpu_link = kind, facts_.gpu_wire = wire;
  }
  Bandwidth pcie_of(uint32_t gpu) const {
    const Device& of = device(gpu);
    return pcie_wire(of.pcie_speed ? of.pcie_speed->value : kAssumedPcieSpeed,
                     of.pcie_lanes ? of.pcie_lanes->value : kAssumedPcieLanes);
  }

  void read_nics() {
    const Rails rails = match_rails(machine_, paths_);
    for (const Rails::Port& port : rails.ports) {
      if (port.gpus.empty()) continue;
      const auto rate = device(port.device).line_rate;
      const Bandwidth wire = rate ? rate->value : kAssumedLineRate;
      facts_.nic_wire = facts_.nics == 0 ? wire : std::min(facts_.nic_wire, wire);
      facts_.nics++;
      facts_.network = std::max(facts_.network, network_of(device(port.device)));
      for (const uint32_t gpu : port.gpus)
        facts_.nics_behind_cpu |= paths_.between(gpu, port.device).type >= PathClass::phb;
    }
  }
  // A GPU's several ports carry its traffic together, as AWS's plugin joins EFA devices and NCCL
  // the ports of a card.
  void join_nics() {
    if (facts_.nics <= facts_.gpus) return;
    facts_.nic_wire.bytes_per_second *= static_cast<double>(facts_.nics) / facts_.gpus;
    facts_.nics = facts_.gpus;
  }
  // EFA and Slingshot NICs are known by their makers (PCI vendor 1d0f and 17db), where none is told
  // by the names that their drivers efa and cxi give.
  Network network_of(const Device& port) const {
    const std::string& name = port.identity.name;
    const Device& nic = device(port.parent);
    const uint16_t vendor = nic.pci_ids ? nic.pci_ids->value.vendor : 0;
    if (vendor == 0x1d0f || name.starts_with("efa")) return Network::efa;
    if (vendor == 0x17db || name.starts_with("cxi")) return Network::slingshot;
    if (!has_rdma(port)) return Network::sockets;
    const bool ethernet = port.link_layer && port.link_layer->value == "Ethernet";
    return ethernet ? Network::roce : Network::infiniband;
  }

  const Machine& machine_;
  std::vector<uint32_t> gpus_;
  Paths paths_;
  SystemFacts facts_;
};

}  // namespace

Result<SystemFacts> facts_of(const Machine& machine) { return Reader(machine).read(); }

}  // namespace crosstie
