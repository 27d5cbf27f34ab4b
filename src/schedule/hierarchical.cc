// SPDX-License-Identifier: Apache-2.0
// Hierarchical AllReduce. The message has as many shards as the largest host has ranks; on every
// host each shard has an owner. Every rank puts its share of a shard to the owner on its host,
// which reduces; the owners of a shard on all hosts form a ring and reduce across; the owner puts
// the result to the other ranks of its host. Hosts may differ in their number of ranks: on a
// smaller one, ranks own several shards. With one host no ring is left, with one rank a host
// nothing but the ring.
//
// Chunks need no credits inside a host either, with a window of two: before chunk c a rank has
// heard from every other of its host in chunk c − 1 (each owns a shard), and that put follows
// all that the other did in chunk c − 2.
#include <utility>

#include "schedule/ring_pass.h"
#include "schedule/schedule.h"
#include "schedule/stage.h"

namespace crosstie {
namespace {

constexpr uint32_t kWindow = kRingWindow;

// What one rank does, and how its slots and flags are numbered, which its peers must know too.
// In the stages inside the host a slot and the flag that tells of it have the same offset.
struct Role {
  uint32_t rank = 0, host = 0, local = 0;
  uint32_t group = 1;  // ranks on its host
  uint32_t shards = 1, hosts = 1;
  uint32_t first = 0, owned = 1;  // shards that it owns

  bool owns(uint32_t shard) const { return shard - first < owned; }
  uint32_t scatter(uint32_t shard, uint32_t from_local) const {
    return (shard - first) * (group - 1) + from_local - (from_local > local ? 1 : 0);
  }
  RingSeat::Numbers ring(uint32_t shard) const {
    const uint32_t scattered = owned * (group - 1);
    return {scattered + (shard - first) * ring_slots(hosts),
            scattered + (shard - first) * ring_flags(hosts)};
  }
  RingSeat::Numbers gather(uint32_t shard) const {
    const RingSeat::Numbers base = ring(first + owned);
    const uint32_t offset = shard < first ? shard : shard - owned;
    return {base.slot + offset, base.flag + offset};
  }
  RingSeat::Numbers end() const { return gather(shards); }
  uint32_t slots() const { return end().slot; }
  uint32_t first_tie() const { return end().flag; }
  uint32_t stages() const { return (group > 1 ? 2 : 0) + (hosts > 1 ? 2 : 0); }
  uint32_t flags() const { return first_tie() + (stages() > 0 ? stages() - 1 : 0); }
};

class Hierarchy {
 public:
  explicit Hierarchy(std::shared_ptr<const Shape> shape)
      : shape_(std::move(shape)), shards_(shape_->most_ranks_on_a_host()) {}

  Schedule::Frame frame() const;
  Program program(uint32_t rank) const;

 private:
  Role role(uint32_t host, uint32_t local) const;
  Role owner(uint32_t host, uint32_t shard) const;
  Part shard(uint32_t s) const { return nth(s, shards_); }
  std::vector<RingSeat> seats(const Role& me) const;
  void add_scatter(Program& program, const Role& me) const;
  void add_rings(Program& program, const Role& me) const;
  void add_gather(Program& program, const Role& me) const;

  std::shared_ptr<const Shape> shape_;
  uint32_t shards_;
};

// Local rank l of g owns the shards s with ⌊s·g/S⌋ = l.
Role Hierarchy::role(uint32_t host, uint32_t local) const {
  const std::vector<uint32_t>& ranks = shape_->hosts()[host].ranks;
  const uint64_t group = ranks.size();
  const auto first_of = [&](uint64_t l) {
    return static_cast<uint32_t>((l * shards_ + group - 1) / group);
  };
  Role role;
  role.rank = ranks[local];
  role.host = host;
  role.local = local;
  role.group = static_cast<uint32_t>(group);
  role.shards = shards_;
  role.hosts = static_cast<uint32_t>(shape_->hosts().size());
  role.first = first_of(local);
  role.owned = first_of(local + 1) - role.first;
  return role;
}

Role Hierarchy::owner(uint32_t host, uint32_t shard) const {
  const uint64_t group = shape_->hosts()[host].ranks.size();
  return role(host, static_cast<uint32_t>(shard * group / shards_));
}

// Those whose turn comes first differ from rank to rank, so that not all put to one at once.
void Hierarchy::add_scatter(Program& program, const Role& me) const {
  Lane& lane = next_stage(program, me.rank, me.first_tie());
  for (uint32_t i = me.owned; i < shards_; i++) {
    const uint32_t s = (me.first + i) % shards_;
    const Role to = owner(me.host, s);
    const uint32_t number = to.scatter(s, me.local);
    lane.steps.push_back(Put{to.rank, number, shard(s), kIn, number});
  }
  for (uint32_t s = me.first; s < me.first + me.owned; s++) {
    const auto first = static_cast<uint32_t>(program.sources.size());
    for (uint32_t from = 0; from < me.group; from++) {
      if (from == me.local) {
        program.sources.push_back(kIn);
        continue;
      }
      lane.steps.push_back(Wait{me.scatter(s, from), 0});
      program.sources.push_back(in_slot(me.scatter(s, from)));
    }
    lane.steps.push_back(Reduce{shard(s), kOut, first, me.group});
  }
}

std::vector<RingSeat> Hierarchy::seats(const Role& me) const {
  std::vector<RingSeat> seats;
  for (uint32_t s = me.first; s < me.first + me.owned; s++) {
    const Role left = owner((me.host + me.hosts - 1) % me.hosts, s);
    const Role right = owner((me.host + 1) % me.hosts, s);
    seats.push_back({me.hosts, me.host, left.rank, right.rank, shard(s), me.group > 1 ? kOut : kIn,
                     me.ring(s), left.ring(s), right.ring(s)});
  }
  return seats;
}

void Hierarchy::add_rings(Program& program, const Role& me) const {
  const std::vector<RingSeat> mine = seats(me);
  add_ring_reduce_scatter(program, next_stage(program, me.rank, me.first_tie()), mine);
  add_ring_all_gather(next_stage(program, me.rank, me.first_tie()), mine);
}

void Hierarchy::add_gather(Program& program, const Role& me) const {
  Lane& lane = next_stage(program, me.rank, me.first_tie());
  for (uint32_t i = 1; i < me.group; i++) {
    const Role to = role(me.host, (me.local + i) % me.group);
    for (uint32_t s = me.first; s < me.first + me.owned; s++) {
      const RingSeat::Numbers at = to.gather(s);
      lane.steps.push_back(Put{to.rank, at.flag, shard(s), kOut, at.slot});
    }
  }
  for (uint32_t i = me.owned; i < shards_; i++) {
    const uint32_t s = (me.first + i) % shards_;
    const RingSeat::Numbers at = me.gather(s);
    lane.steps.push_back(Wait{at.flag, 0});
    lane.steps.push_back(Copy{shard(s), kOut, in_slot(at.slot)});
  }
}

Program Hierarchy::program(uint32_t rank) const {
  const Shape::Place place = shape_->place(rank);
  const Role me = role(place.host, place.local);
  if (me.stages() == 0) return copy_in_to_out();
  Program program;
  program.sources.reserve(size_t{me.owned} * (me.group + 2 * size_t{me.hosts}));
  if (me.group > 1) add_scatter(program, me);
  if (me.hosts > 1) add_rings(program, me);
  if (me.group > 1) add_gather(program, me);
  return program;
}

// Who owns most has most slots and flags, and on each host the first rank is one of those.
Schedule::Frame Hierarchy::frame() const {
  Schedule::Frame frame;
  frame.collective = Collective::all_reduce;
  frame.algorithm = Algorithm::hierarchical;
  frame.ranks = shape_->ranks();
  frame.window = frame.ranks > 1 ? kWindow : 1;
  const auto hosts = static_cast<uint32_t>(shape_->hosts().size());
  frame.largest = shards_ > 1 ? shard(0) : nth(0, hosts);
  for (uint32_t host = 0; host < hosts; host++) {
    const Role first = role(host, 0);
    frame.slots = std::max(frame.slots, first.slots());
    frame.flags = std::max(frame.flags, first.flags());
  }
  return frame;
}

}  // namespace

Schedule hierarchical_all_reduce(std::shared_ptr<const Shape> shape) {
  const Hierarchy hierarchy(std::move(shape));
  return {hierarchy.frame(), [hierarchy](uint32_t rank) { return hierarchy.program(rank); }};
}

}  // namespace crosstie
