// SPDX-License-Identifier: Apache-2.0
// What is not the same on two machines, or in two topologies.
#pragma once
#include <span>

#include "topology/topology.h"

namespace crosstie {

// What matters first comes first: a host, a device or a link that is not there, a link that is
// slower or down, NVLinks before PCIe; what lies farther from each other; any other property.
enum class DifferenceKind : uint8_t { host, device, link, path, property };
template <>
struct Names<DifferenceKind> {
  static constexpr std::array<std::string_view, 5> all = {"host", "device", "link", "path",
                                                          "property"};
};

struct Difference {
  DifferenceKind kind = DifferenceKind::property;
  std::vector<std::string>
      hosts{};                    // that have it, by their names in the first; empty: the only one
  std::string device{};           // its label in the first, or in the second if only there
  std::string what{};             // of it
  std::string first{}, second{};  // empty: not there
  std::vector<std::string> effects{};  // paths that are of another class for it: "gpu0 - mlx5_0: …"
};

// Devices are recognised by identity, else by their place, never by their index. Not compared: how
// a thing is known; what only one of the two tells; the present speed of a GPU's PCIe link, which
// it lowers when idle; PCI addresses, which move with any card that is put in; and what no two hosts
// share (UUIDs, GUIDs, names, LIDs, GIDs), unless some of it is the same and the two are thus one
// host, seen twice.
std::vector<Difference> diff(const Machine& first, const Machine& second);
// Hosts are recognised by name, or by order where no name is in both.
std::vector<Difference> diff(const Topology& first, const Topology& second);

// For people; `first` and `second` are what they know the two by. Empty where nothing differs.
std::string differences_text(std::span<const Difference> differences, std::string_view first,
                             std::string_view second);
// One line: "gpu0: nvlink to nvswitch0: 18x -> 17x".
std::string to_text(const Difference& difference, std::string_view first, std::string_view second);
// For programs; has a schema version.
std::string differences_json(std::span<const Difference> differences, std::string_view first,
                             std::string_view second);

}  // namespace crosstie
