// SPDX-License-Identifier: Apache-2.0
// Several hosts, seen one by one, as a cluster.
#pragma once
#include "topology/topology.h"

namespace crosstie {

// All hosts of the parts, in their order; merging the outcome again changes nothing.
//
// - Hosts are of one kind, and share a Machine, where all is equal but what tells one unit from
//   another (UUIDs, GUIDs, LIDs, GIDs, fabric clique, host hash, rank): that is kept in
//   Host::units. Anything else that differs, a trained link width or a dark port too, makes a kind
//   of its own, since it is what one wants to see; but not the speed that an idle GPU's link has.
// - A host that is in several parts, as ranks of one host dump it each, is one, with all that was
//   seen of it. It is recognised by what cannot be another's: at least half of the UUIDs, GUIDs and
//   host hashes of the lesser sighting are the other's. Without any such: by name and source.
// - Hosts whose GPUs tell of one clique of one NVLink fabric are of one domain, if NVSwitches join
//   them. That it carries anything is the fabric manager's word, which a gap says.
// - Leaves of one name are one. A second host of a name is told apart as NAME#2.
Topology merge(std::vector<Topology> parts);

// What is the device's alone taken out of it, and put back.
Unit take_unit(uint32_t index, Device& device);
void wear(const Unit& unit, Device& device);

}  // namespace crosstie
