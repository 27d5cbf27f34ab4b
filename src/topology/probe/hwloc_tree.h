// SPDX-License-Identifier: Apache-2.0
// What hwloc's XML tells, of which we need little: packages, NUMA nodes, PCI, devices of the
// operating system, and matrices of bandwidths. Read here, not by hwloc, since each of its major
// versions refuses files of another (2 those of 3, 3 those of 1), and since it prints to stderr
// and may assert() on what is not a file of its own.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.h"

namespace crosstie::probe {

enum class HwlocType : uint8_t { other, package, numa, host_bridge, bridge, pci, os };

struct HwlocObject {
  HwlocType type = HwlocType::other;
  uint32_t parent = kNoDevice;  // index of an object before this one
  std::optional<uint32_t> number{};
  std::string name{};
  std::map<std::string, std::string> infos{};
  std::string cpuset{}, nodeset{};  // as hwloc writes bitmaps
  Bdf bdf{};                        // bridge, pci
  std::string root_bus{};           // host_bridge: the first that it leads to, "0000:16"
  int pci_class = 0;                // base class and subclass: 0x0302
  PciIds ids{};
  double gigabytes = 0;                             // a second, of the link above; 0: not known
  bool network = false, rdma = false, gpu = false;  // os; an accelerator counts as a GPU

  bool is_io() const { return type >= HwlocType::host_bridge; }
  std::string info(const std::string& key) const {
    const auto found = infos.find(key);
    return found == infos.end() ? std::string() : found->second;
  }
};

// Of each object to each, in MB/s.
struct HwlocMatrix {
  std::string name;
  std::vector<uint32_t> objects;  // kNoDevice: one that is not there
  std::vector<uint64_t> values;
};

struct HwlocTree {
  int version = 2;  // of the format: 1, 2 or 3
  std::vector<HwlocObject> objects;
  std::vector<HwlocMatrix> matrices;         // NVLinkBandwidth, XGMIBandwidth
  std::map<std::string, std::string> infos;  // of the whole: HostName, Architecture
  std::vector<Gap> gaps;                     // of what cannot be read

  std::string info(const std::string& key) const {
    const auto found = infos.find(key);
    return found == infos.end() ? std::string() : found->second;
  }
};

Result<HwlocTree> parse_hwloc_xml(std::string_view text);

}  // namespace crosstie::probe
