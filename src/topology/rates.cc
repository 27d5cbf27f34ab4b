// SPDX-License-Identifier: Apache-2.0
#include "topology/rates.h"

#include <fmt/format.h>

namespace crosstie {
namespace {

// By model of family 6, from where on: Skylake, Sapphire Rapids, Emerald Rapids.
Bandwidth intel_bandwidth(int model) {
  if (model >= 0xcf) return gigabytes(40);
  if (model >= 0x8f) return gigabytes(22);
  if (model >= 0x55) return gigabytes(10);
  return gigabytes(6);
}

}  // namespace

std::string pcie_text(double gigatransfers, int lanes) {
  return fmt::format("{:g} GT/s x{}", gigatransfers, lanes);
}

Bandwidth pcie_bandwidth(double gigatransfers, int lanes) {
  const double coding = gigatransfers <= 5 ? 0.8 : 1.0;
  return gigabits(gigatransfers * coding * 0.75 * lanes);
}

Bandwidth nvlink_bandwidth(int compute_capability) {
  switch (compute_capability) {
    case 60:
      return gigabytes(18);
    case 86:
      return gigabytes(12);
    default:
      break;
  }
  if (compute_capability >= 100) return gigabytes(40.1);
  if (compute_capability >= 90) return gigabytes(20.6);
  return gigabytes(20);
}

Bandwidth xgmi_bandwidth(std::string_view gcn) {
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  if (gcn.starts_with("94")) return gigabytes(48);
  // 910 is what RCCL wrote for 90a when it wrote numbers.
  return gigabytes(gcn.starts_with("90a") || gcn == "910" ? 36 : 24);
}

uint32_t most_nvlinks(int compute_capability) {
  if (compute_capability == 0 || compute_capability >= 90) return 18;
  if (compute_capability >= 80) return 12;
  if (compute_capability >= 70) return 6;
  return compute_capability >= 60 ? 4 : 0;
}

std::optional<Bandwidth> sys_bandwidth(const CpuModel& cpu) {
  if (cpu.vendor == "GenuineIntel") {
    if (cpu.family != 6) return std::nullopt;
    return intel_bandwidth(cpu.model);
  }
  if (cpu.vendor == "AuthenticAMD") return gigabytes(16);
  // Zhaoxin, under both of its names; the second is Yongfeng.
  if (cpu.vendor == "CentaurHauls" || cpu.vendor == "  Shanghai  ")
    return gigabytes(cpu.family == 7 && cpu.model == 0x5b ? 9 : 6);
  if (cpu.arch == "ppc64") return gigabytes(32);
  if (cpu.arch == "arm64") return gigabytes(6);
  return std::nullopt;
}

}  // namespace crosstie
