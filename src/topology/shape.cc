// SPDX-License-Identifier: Apache-2.0
#include "topology/shape.h"

#include <algorithm>
#include <map>

#include "base/digest.h"

namespace crosstie {
namespace {

// Labels to 0, 1, 2… in the order in which they first appear.
std::vector<uint32_t> renumber(const std::vector<uint32_t>& labels) {
  std::map<uint32_t, uint32_t> numbers;
  std::vector<uint32_t> out;
  out.reserve(labels.size());
  for (const uint32_t label : labels)
    out.push_back(numbers.emplace(label, static_cast<uint32_t>(numbers.size())).first->second);
  return out;
}

uint32_t count_of(const std::vector<uint32_t>& numbers) {
  return 1 + *std::max_element(numbers.begin(), numbers.end());
}

}  // namespace

Result<Shape> Shape::make(const Facts& facts) {
  const size_t ranks = facts.host_of.size();
  if (ranks == 0) return fail(Code::invalid, "a shape needs at least one rank");
  if (!facts.domain_of.empty() && facts.domain_of.size() != ranks)
    return fail(Code::invalid, "{} ranks but {} NVLink domains", ranks, facts.domain_of.size());
  const auto host = renumber(facts.host_of);
  const auto domain = facts.domain_of.empty() ? host : renumber(facts.domain_of);
  Shape shape;
  shape.hosts_.resize(count_of(host));
  shape.domains_ = count_of(domain);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    Host& h = shape.hosts_[host[rank]];
    shape.places_.push_back({host[rank], static_cast<uint32_t>(h.ranks.size()), domain[rank]});
    h.ranks.push_back(rank);
    if (facts.host_of[rank] < facts.rails_of_host.size())
      h.rails = facts.rails_of_host[facts.host_of[rank]];
  }
  return shape;
}

Result<Shape> Shape::regular(uint32_t hosts, uint32_t ranks_per_host) {
  const uint64_t ranks = uint64_t{hosts} * ranks_per_host;
  if (ranks == 0 || ranks > kMostRanks)
    return fail(Code::invalid, "{} hosts of {} ranks; a shape has from 1 to {} ranks", hosts,
                ranks_per_host, kMostRanks);
  Facts facts;
  facts.host_of.reserve(ranks);
  for (uint32_t rank = 0; rank < ranks; rank++) facts.host_of.push_back(rank / ranks_per_host);
  return make(facts);
}

uint32_t Shape::most_ranks_on_a_host() const {
  const auto fewer = [](const Host& a, const Host& b) { return a.ranks.size() < b.ranks.size(); };
  return static_cast<uint32_t>(std::max_element(hosts_.begin(), hosts_.end(), fewer)->ranks.size());
}

uint64_t Shape::digest() const {
  Digest digest;
  digest.add(places_.size()).add(hosts_.size());
  for (const Place& place : places_) digest.add(place.host).add(place.domain);
  for (const Host& host : hosts_) {
    digest.add(host.rails.size());
    for (const Bandwidth rail : host.rails)
      digest.add(static_cast<uint64_t>(rail.bytes_per_second));
  }
  return digest.value();
}

}  // namespace crosstie
