// SPDX-License-Identifier: Apache-2.0
// Shape: what every rank of a communicator agrees on about where its ranks are. Exchanged or
// given, hashed, never a local observation; all collective decisions read it and nothing else
// of the topology.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace crosstie {

class Shape {
 public:
  // Far above any cluster: the largest of 2025 have some 10^5 GPUs.
  static constexpr uint64_t kMostRanks = 1 << 24;

  struct Host {
    std::vector<uint32_t> ranks;   // ascending
    std::vector<Bandwidth> rails;  // one per rail; empty: unknown
  };
  // Where a rank sits.
  struct Place {
    uint32_t host = 0;    // index into hosts()
    uint32_t local = 0;   // index into that host's ranks
    uint32_t domain = 0;  // NVLink domain; ranks of one host may differ in it, and hosts share it
  };

  // host_of[r] and domain_of[r]: any labels, one per rank. Hosts and domains are renumbered in
  // the order of their lowest rank, so that equal facts give equal Shapes whatever the labels.
  // rails: per host label; missing labels have none. Fails when there is no rank.
  struct Facts {
    std::vector<uint32_t> host_of;
    std::vector<uint32_t> domain_of;  // empty: each host is a domain of its own
    std::vector<std::vector<Bandwidth>> rails_of_host;
  };
  static Result<Shape> make(const Facts& facts);
  // hosts x ranks_per_host ranks, host by host; each host one domain, no rails. Fails where there
  // would be none, or more than kMostRanks.
  static Result<Shape> regular(uint32_t hosts, uint32_t ranks_per_host);

  uint32_t ranks() const { return static_cast<uint32_t>(places_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  const Place& place(uint32_t rank) const { return places_[rank]; }
  bool same_host(uint32_t a, uint32_t b) const { return places_[a].host == places_[b].host; }
  uint32_t domains() const { return domains_; }
  uint32_t most_ranks_on_a_host() const;
  uint64_t digest() const;

 private:
  std::vector<Host> hosts_;
  std::vector<Place> places_;
  uint32_t domains_ = 0;
};

}  // namespace crosstie
