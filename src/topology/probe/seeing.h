// SPDX-License-Identifier: Apache-2.0
// What the parts of the live probe share.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

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

// Which PCI function an operating system's device belongs to, as an index of the Builder.
struct NicNames {
  std::map<std::string, uint32_t> net;   // eth0
  std::map<std::string, uint32_t> rdma;  // mlx5_0
  std::set<std::string> shared;          // of virtual functions whose port is told of already
};

void see_nvidia_gpus(Builder& builder, const Nvml& nvml);

// Returns the NICs of which a port was seen.
std::set<uint32_t> see_rdma_ports(Builder& builder, const Verbs& verbs,
                                  const std::filesystem::path& sysfs, const NicNames& names);

}  // namespace crosstie::probe
