// SPDX-License-Identifier: Apache-2.0
// Who the ranks are: from everybody's facts to one Shape, the same on all of them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/rendezvous.h"
#include "topology/shape.h"
#include "transport/endpoint.h"

namespace crosstie {

// What a rank tells the others of itself.
struct RankFacts {
  std::string host;      // ranks with one label share a host
  std::string hostname;  // for messages
  int pid = 0;
  std::string version;
  std::string settings;  // those that must be equal on all ranks
  Blob inside, across;   // where its Workers listen
};
std::string pack(const RankFacts& facts);
Result<RankFacts> unpack_facts(std::string_view packed);

// "the kernel's": boot and network namespace, within which processes can attach each other's
// memory through an abstract socket.
std::string kernel_identity();

class Team {
 public:
  // Fails where ranks have different versions or settings, naming two that differ.
  static Result<Team> make(int rank, const std::vector<std::string>& facts);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(facts_.size()); }
  const RankFacts& facts(int rank) const { return facts_[static_cast<size_t>(rank)]; }
  const std::shared_ptr<const Shape>& shape() const { return shape_; }
  bool is_inside(int peer) const {
    return shape_->same_host(static_cast<uint32_t>(rank_), static_cast<uint32_t>(peer));
  }
  // "rank 3 on host b (pid 4711)".
  std::string name(int rank) const;

 private:
  int rank_ = 0;
  std::vector<RankFacts> facts_;
  std::shared_ptr<const Shape> shape_;
};

}  // namespace crosstie
