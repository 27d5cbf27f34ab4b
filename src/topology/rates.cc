// SPDX-License-Identifier: Apache-2.0
#include "topology/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace crosstie {
namespace {

// What NCCL looks for at the beginning of a text (2.28.9, src/graph/topo.cc).
constexpr std::array<std::string_view, 10> kPcieSpeedsOfNccl = {
    "2.5 GT/s",      "5 GT/s",        "8 GT/s",         "16 GT/s",        "32 GT/s",
    "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};

// By model of family 6, from where on: Skylake, Sapphire Rapids, Emerald Rapids.
Bandwidth intel_bandwidth(int model) {
  if (model >= 0xcf) return gigabytes(40);
  if (model >= 0x8f) return gigabytes(22);
  if (model >= 0x55) return gigabytes(10);
  return gigabytes(6);
}

// 90a of "gfx90a:sramecc+:xnack-", and of 910, which is what RCCL wrote when it wrote numbers.
std::string_view plain_gcn(std::string_view gcn) {
  gcn = gcn.substr(0, gcn.find(':'));
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  return gcn == "910" ? "90a" : gcn;
}

}  // namespace

bool nccl_knows_pcie_speed(std::string_view text) {
  return std::ranges::any_of(kPcieSpeedsOfNccl,
                             [&](std::string_view speed) { return text.starts_with(speed); });
}

// What was told better since is not what the words tell.
const std::string* pcie_speed_unknown_to_nccl(const Device& device) {
  const auto words = device.attributes.find("pci.link_speed");
  if (words == device.attributes.end() || !device.pcie_speed) return nullptr;
  const std::string& text = words->second;
  double told = 0;
  std::from_chars(text.data(), text.data() + text.size(), told);
  const bool is_its_own = told == device.pcie_speed->value;
  return is_its_own && !nccl_knows_pcie_speed(text) ? &text : nullptr;
}

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
  gcn = plain_gcn(gcn);
  if (gcn.starts_with("94")) return gigabytes(48);
  return gigabytes(gcn == "90a" ? 36 : 24);
}

// Its last two digits are minor version and stepping.
int capability_of_gcn(std::string_view gcn) {
  gcn = plain_gcn(gcn);
  if (gcn.size() < 3 || gcn.size() > 4 ||
      std::isxdigit(static_cast<unsigned char>(gcn.back())) == 0)
    return 0;
  int capability = 0;
  const char* const end = gcn.data() + gcn.size() - 1;
  const auto [rest, error] = std::from_chars(gcn.data(), end, capability);
  return error == std::errc() && rest == end && capability > 0 ? capability : 0;
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
