// SPDX-License-Identifier: Apache-2.0
// NVLink domains of several hosts, as in a rack of NVL72: their NVSwitches are outside the hosts
// and serve them all.
#pragma once
#include "topology/topology.h"

namespace crosstie {

// Gives each hosts_in_domain() hosts in a row of such a kind a domain, named by `name` and a
// number, unless they have one. For hosts made up, not seen.
void assume_domains(std::span<Host> hosts, std::string_view name);

// The hosts of that domain as one Machine, in their order: Device::host numbers them, labels begin
// with the host's name and a slash, the k-th NVSwitch of each is one. Paths over it lead from a GPU
// to all GPUs of the domain; there is no way to NUMA nodes and ports of another host. Fails where
// no host is of that domain and where nothing joins them (no NVSwitch, or unequally many).
Result<Machine> fuse(const Topology& topology, std::string_view domain);

}  // namespace crosstie
