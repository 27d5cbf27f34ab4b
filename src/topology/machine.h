// SPDX-License-Identifier: Apache-2.0
// One kind of host, or of NVLink domain of several hosts: its devices, the links between them, and
// what could not be seen. Immutable once made, so that thousands of hosts share one; made by a
// Builder.
#pragma once
#include <span>
#include <vector>

#include "topology/device.h"

namespace crosstie {

enum class LinkType : uint8_t { local, pci, nvlink, xgmi, c2c, sys, net };
template <>
struct Names<LinkType> {
  static constexpr std::array<std::string_view, 7> all = {"local", "pci", "nvlink", "xgmi",
                                                          "c2c",   "sys", "net"};
};

// What vendors make for GPUs, beside PCIe.
inline bool is_gpu_link(LinkType type) {
  return type == LinkType::nvlink || type == LinkType::xgmi || type == LinkType::c2c;
}

// Both ways alike. A NIC's link to its port is `net` and carries the line rate; `sys` joins
// NUMA nodes; `local` never limits (parts of one chip, network devices made of software).
struct Link {
  uint32_t a = 0, b = 0;  // indices of devices
  LinkType type = LinkType::pci;
  uint32_t count = 1;               // lanes of a bundle, as 18 NVLinks; not PCIe lanes
  Property<Bandwidth> bandwidth{};  // one way, of the whole bundle; none: not known, and a gap
  bool operator==(const Link&) const = default;
};

// What a Gap is about, where programs care.
enum class GapAbout : uint8_t {
  other,
  numa_node,
  pcie_link,
  line_rate,
  gpu_link,
  placement,
  fabric
};
template <>
struct Names<GapAbout> {
  static constexpr std::array<std::string_view, 7> all = {
      "other", "numa-node", "pcie-link", "line-rate", "gpu-link", "placement", "fabric"};
};

// What could not be seen, of which device, and what is assumed instead.
struct Gap {
  std::string device;   // its label, or a name that only the source knows
  std::string missing;  // what is not known and why
  std::string assumed;  // empty: nothing
  GapAbout about = GapAbout::other;

  std::string text() const {
    return assumed.empty() ? missing : fmt::format("{}; assumed: {}", missing, assumed);
  }
  bool operator==(const Gap&) const = default;
};

// Two GPUs between which the driver refuses peer-to-peer access.
struct Refusal {
  uint32_t a = 0, b = 0;  // indices of devices
  std::string why;
  bool operator==(const Refusal&) const = default;
};

class Machine {
 public:
  // Devices in depth-first order: a parent comes before its children, siblings stay together. Links
  // ascend by ends and type.
  struct Parts {
    std::string name;
    std::string source;  // a file's name, "synthetic", "live"
    std::vector<Device> devices;
    std::vector<Link> links;
    std::vector<Gap> gaps;
    std::vector<Refusal> refusals{};
    uint32_t hosts_in_domain = 1;  // hosts like this that share NVSwitches when all are there
    // What NCCL takes for true where it is misled: in place of the one of `links` with these ends
    // and type, or beside them. Without a bandwidth: it knows of no such link.
    std::vector<Link> nccl_links{};
  };
  explicit Machine(Parts parts) : parts_(std::move(parts)) {}

  const Parts& parts() const { return parts_; }  // to make another that differs in little
  const std::string& name() const { return parts_.name; }
  const std::string& source() const { return parts_.source; }
  std::span<const Device> devices() const { return parts_.devices; }
  std::span<const Link> links() const { return parts_.links; }
  std::span<const Gap> gaps() const { return parts_.gaps; }
  std::span<const Refusal> refusals() const { return parts_.refusals; }
  uint32_t hosts_in_domain() const { return parts_.hosts_in_domain; }
  std::span<const Link> nccl_links() const { return parts_.nccl_links; }
  // `links` with what NCCL takes instead, ascending by ends and type.
  std::vector<Link> links_as_nccl_takes_them() const;
  // All of that kind, in order.
  std::vector<uint32_t> of_kind(DeviceKind kind) const;
  // Whether one of this Machine's devices is a part of another: a partition, a virtual function.
  bool is_part(const Device& device) const;
  // Whether it is a partition that reaches other GPUs only through the host: NVIDIA allows MIG no
  // peer-to-peer access, over PCIe or NVLink, while AMD's partitions have their GPU's links.
  bool has_no_peers(const Device& device) const;
  // GPUs that are no partitions of another.
  std::vector<uint32_t> whole_gpus() const;
  // Hosts that the devices are of: more than one in an NVLink domain.
  uint32_t host_count() const;
  // Of GPUs those that work can be given to: not one with partitions, but each of these. Of NICs no
  // virtual functions of others.
  std::vector<uint32_t> endpoints(DeviceKind kind) const;
  uint32_t count(DeviceKind kind) const { return static_cast<uint32_t>(endpoints(kind).size()); }

 private:
  Parts parts_;
};

// Of one kind: all the same but the name and the source, and what a GPU's link was slowed to.
bool same_kind(const Machine& a, const Machine& b);

// Every promise that a Machine makes to its readers; the error names the first one broken.
Status validate(const Machine& machine);

}  // namespace crosstie
