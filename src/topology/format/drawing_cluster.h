// SPDX-License-Identifier: Apache-2.0
// Hosts and the leaf switches that they are cabled to.
#pragma once
#include <map>

#include "topology/format/drawing_machine.h"
#include "topology/topology.h"

namespace crosstie {

// Their name, or how many of which kind; and in which NVLink domains.
std::string title_of(const std::vector<const Host*>& hosts);

using RailsOf = std::map<const Machine*, PortRails>;

// Each host and leaf where they are few; else one box for each kind of host, one for the leaves of
// each rail.
void draw_cluster(dot::Writer& out, const Topology& topology, const RailsOf& rails_of);

}  // namespace crosstie
