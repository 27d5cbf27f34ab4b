// SPDX-License-Identifier: Apache-2.0
// Reads an overlay, which tells what a VM hides, in TOML:
//
//   [[switch]]                    # a PCIe switch
//   devices = ["0000:05:00.0", "0000:06:00.0"]   # right beneath it, as the guest addresses them;
//                                 # also the bdf of another [[switch]]
//   numa = 0                      # else it is not known
//   bdf = "0000:f0:00.0"          # else one that is free; no guest sees it
//   gt_s = 32.0, lanes = 16       # its link towards the CPU, else as in [pcie] or beneath it
//   [[device]]                    # what the guest sees wrongly, or not at all, of a device
//   bdf = "0000:05:00.0"
//   numa = 1                      # of it and of all on its root port; beneath a [[switch]] that
//                                 # one's, if any
//   gt_s, lanes                   # its PCIe link
//   gigabits_per_second = 400.0   # of the ports of a NIC
//   [pcie]                        # where nothing tells better
//   gt_s, lanes
//   [nvlink]                      # of each GPU that shows no NVLink, to each NVSwitch
//   links_to_switch = [18]
//
// Numbers without [[device]] or [pcie] are those that the guest sees.
#include <set>

#include "topology/format/toml.h"

namespace crosstie {
namespace {

constexpr Provenance kFile = Provenance::file;
constexpr int64_t kMostNuma = 255;
constexpr std::string_view kSwitch = "as a switch";

class Reader : TomlReader {
 public:
  Result<Overlay> read(const toml::table& root);

 private:
  void read_switch(const toml::table& in);
  void read_device(const toml::table& in);
  void read_pcie(const toml::table& in, Property<double>& speed, Property<int>& lanes);
  std::optional<uint32_t> numa(const toml::table& in);
  std::optional<Bdf> own_address(const toml::table& in);
  void once(const toml::node& at, const Bdf& bdf, std::string_view as);

  Overlay overlay_;
  std::set<std::pair<std::string_view, Bdf>> used_;
};

void Reader::once(const toml::node& at, const Bdf& bdf, std::string_view as) {
  if (!used_.emplace(as, bdf).second)
    mistake(at, fmt::format("{} is listed twice {}", to_text(bdf), as));
}

std::optional<uint32_t> Reader::numa(const toml::table& in) {
  const auto number = number_if_any<int64_t>(in, "numa", 0, kMostNuma);
  return number ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

void Reader::read_pcie(const toml::table& in, Property<double>& speed, Property<int>& lanes) {
  if (in.contains("gt_s")) speed = known(pcie_speed(in, "gt_s"), kFile);
  if (in.contains("lanes")) lanes = known(pcie_lanes(in, "lanes"), kFile);
}

std::optional<Bdf> Reader::own_address(const toml::table& in) {
  const toml::node* const node = in.get("bdf");
  return node == nullptr ? std::nullopt : address(*node);
}

void Reader::read_switch(const toml::table& in) {
  allow(in, "[[switch]]", {"devices", "numa", "bdf", "gt_s", "lanes"});
  Overlay::Switch s{.bdf = own_address(in), .numa = numa(in)};
  if (s.bdf) once(in, *s.bdf, kSwitch);
  read_pcie(in, s.pcie_speed, s.pcie_lanes);
  const toml::array& devices = list(in, "devices");
  if (devices.empty()) mistake(in, "a [[switch]] needs 'devices'");
  for (const toml::node& node : devices)
    if (const auto bdf = address(node)) {
      once(node, *bdf, "beneath switches");
      s.devices.push_back(*bdf);
    }
  overlay_.switches.push_back(std::move(s));
}

void Reader::read_device(const toml::table& in) {
  allow(in, "[[device]]", {"bdf", "numa", "gt_s", "lanes", "gigabits_per_second"});
  const auto bdf = own_address(in);
  if (!bdf) return mistake(in, "a [[device]] needs 'bdf'");
  once(in, *bdf, "as a device");
  if (used_.contains({kSwitch, *bdf}))
    mistake(in, fmt::format("{} is a [[switch]] of this overlay; tell numa, gt_s and lanes there",
                            to_text(*bdf)));
  Overlay::Correction c{.bdf = *bdf, .numa = numa(in)};
  read_pcie(in, c.pcie_speed, c.pcie_lanes);
  if (const auto rate = number_if_any(in, "gigabits_per_second", 0.001, 1e6))
    c.line_rate = known(gigabits(*rate), kFile);
  overlay_.corrections.push_back(std::move(c));
}

Result<Overlay> Reader::read(const toml::table& root) {
  allow(root, "an overlay", {"switch", "device", "pcie", "nvlink"});
  for_each_table(root, "switch", [&](const auto& in) { read_switch(in); });
  for_each_table(root, "device", [&](const auto& in) { read_device(in); });
  if (const toml::node* const node = root.get("pcie")) {
    if (!node->is_table()) mistake(*node, "[pcie] must be a table");
    if (!status_) return pass(status_);
    allow(*node->as_table(), "[pcie]", {"gt_s", "lanes"});
    read_pcie(*node->as_table(), overlay_.pcie_speed, overlay_.pcie_lanes);
  }
  if (const toml::node* const node = root.get("nvlink")) {
    if (!node->is_table()) mistake(*node, "[nvlink] must be a table");
    if (!status_) return pass(status_);
    allow(*node->as_table(), "[nvlink]", {"links_to_switch"});
    overlay_.links_to_switch = links_to_switches(list(*node->as_table(), "links_to_switch"));
    if (overlay_.links_to_switch.empty())
      mistake(*node, "[nvlink] needs 'links_to_switch', the links of each GPU to each NVSwitch");
  }
  if (!status_) return pass(status_);
  return std::move(overlay_);
}

}  // namespace

Result<Overlay> read_overlay_table(const toml::table& table) { return Reader().read(table); }

Result<Overlay> read_overlay_toml(std::string_view text) {
  return parse_toml(text, read_overlay_table);
}

}  // namespace crosstie
