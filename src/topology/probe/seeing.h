// SPDX-License-Identifier: Apache-2.0
// What the parts of the live probe share.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>

#include "driver/drivers.h"
#include "topology/builder.h"

namespace crosstie::probe {

// The first line of a file of sysfs, or empty.
inline std::string read_line(const std::filesystem::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

// "32.0 GT/s PCIe", "16", "400000"; 0 where there is no number, or a negative one.
inline double read_number(const std::filesystem::path& file) {
  const double value = std::strtod(read_line(file).c_str(), nullptr);
  return value > 0 ? value : 0;
}

// 16 bytes in hexadecimal digits, in groups of 4, 2, 2, 2 and 6.
inline std::string uuid_text(std::span<const unsigned char, 16> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// Which PCI function an operating system's device belongs to, as an index of the Builder.
struct NicNames {
  std::map<std::string, uint32_t> net;   // eth0
  std::map<std::string, uint32_t> rdma;  // mlx5_0
  std::set<std::string> shared;          // of virtual functions whose port is told of already
};

// Of everything that has a PCI address: present link, class, ids; of switches access control.
void see_pci_functions(Builder& builder, const std::filesystem::path& sysfs);

void see_nvidia_gpus(Builder& builder, const Nvml& nvml);
void see_cuda_gpus(Builder& builder, const Cuda& cuda);

// Returns the NICs whose ports are told of by it, or are not to be.
std::set<uint32_t> see_rdma_ports(Builder& builder, const Verbs& verbs,
                                  const std::filesystem::path& sysfs, const NicNames& names,
                                  const std::string& hcas);
// The port of a NIC by its network device.
void see_net_port(Builder& builder, const std::filesystem::path& sysfs, const std::string& name,
                  uint32_t nic);

// Network devices that a bond joins; none where it is no bond.
struct Bond {
  std::vector<std::string> members;
  size_t up = 0;          // members with a carrier
  Bandwidth rate{};       // of those, as far as they tell it
  bool is_shared = true;  // each carries a part: not one member at a time, nor all of them the same
};
Bond find_bond(const std::filesystem::path& sysfs, const std::string& net);

}  // namespace crosstie::probe
