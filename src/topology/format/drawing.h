// SPDX-License-Identifier: Apache-2.0
// Topologies as pictures, by Graphviz. One kind of host is drawn from its CPUs to its ports; where
// leaf switches are known, several hosts are drawn small and cabled to them.
#pragma once
#include <string>

#include "topology/topology.h"

namespace crosstie {

// In the language of Graphviz, for its `dot`.
std::string dot_text(const Topology& topology);

enum class Picture : uint8_t { svg, png };
template <>
struct Names<Picture> {
  static constexpr std::array<std::string_view, 2> all = {"svg", "png"};
};

// The whole file. Graphviz works in a process of its own, which is stopped when it takes too long:
// the caller must have no other threads. Fails where it is not built in or says no.
Result<std::string> drawing(const Topology& topology, Picture picture);

}  // namespace crosstie
