// SPDX-License-Identifier: Apache-2.0
// Executes one rank's Program over the Links, one operation at a time. Nothing here waits: the
// caller polls the Links, hands in what has been notified, and lets the lanes run on.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "memory/reduce.h"
#include "runtime/links.h"
#include "schedule/schedule.h"
#include "schedule/slicer.h"

namespace crosstie {

// How an operation's message is cut, and where its slots lie in every rank's scratch: the same
// function of the same facts on all ranks.
struct Cut {
  Slicer slicer{0, 1, 1};
  uint64_t slot_bytes = 0;  // from one slot copy to the next
};
// As few chunks as keep the largest piece within `chunk_bytes` and all slots within
// `scratch_bytes`.
Result<Cut> cut(const Schedule::Frame& frame, uint64_t elements, uint32_t element_size,
                uint64_t chunk_bytes, uint64_t scratch_bytes);

class Engine {
 public:
  struct Operation {
    uint64_t number = 0;  // counts from 1, the same on all ranks
    std::shared_ptr<const Program> program;
    Schedule::Frame frame;
    Cut cut;
    DataType type = DataType::f32;
    uint8_t digest = 0;  // of what all ranks must ask for alike
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::span<std::byte> scratch;
  };

  explicit Engine(int rank) : rank_(static_cast<uint32_t>(rank)) {}

  // Fails where a rank has already put for another collective than this.
  Status start(Operation operation);
  bool running() const { return running_; }

  // Runs every lane as far as it goes. True if anything moved.
  bool advance(Links& links);
  // All lanes have ended and the caller's memory is no longer read.
  bool finished() const;
  // Forgets the operation, finished or not; its late flags will be dropped.
  void end();

  // Whether a lane can only go on by one of these flags.
  bool waits_for(const std::set<uint32_t>& flags) const;
  // Those of `self` that a peer's Program raises.
  static std::set<uint32_t> flags_raised(const Program& peers, int self);

  // From the Links' events. Fails, with the rank, where it does another collective than we.
  Status notified(int rank, uint32_t immediate);
  void put_done() { unfinished_puts_--; }

  // Ranks that a Program puts to or signals, without the rank itself; ascending.
  static std::vector<int> peers(const Program& program, int self);

 private:
  struct Flag {
    uint32_t raised = 0;  // without gaps
    uint32_t early = 0;   // bit i: raise number `raised` + i has come before its turn
  };
  struct LaneState {
    const Lane* lane = nullptr;
    uint32_t chunk = 0;
    size_t step = 0;
  };

  bool run(LaneState& state, Links& links);
  bool execute(const Wait& step, uint32_t chunk, Links& links);
  bool execute(const Put& step, uint32_t chunk, Links& links);
  bool execute(const Signal& step, uint32_t chunk, Links& links);
  bool execute(const Copy& step, uint32_t chunk, Links& links);
  bool execute(const Reduce& step, uint32_t chunk, Links& links);

  uint64_t slot_offset(uint32_t slot, uint32_t chunk) const;
  uint64_t offset(Part part, Place place, uint32_t chunk) const;
  std::byte* memory(Part part, Place place, uint32_t chunk) const;
  uint64_t count(Part part, uint32_t chunk) const {
    return operation_.cut.slicer.range(part, chunk).count;
  }
  uint32_t immediate(uint32_t flag, uint32_t chunk) const;
  Status check_digest(int rank, uint8_t digest) const;
  void raise(uint32_t flag, uint32_t chunk);
  Flag& flag(uint32_t index);

  const uint32_t rank_;
  bool running_ = false;
  uint64_t ended_ = 0;  // number of the last operation that has ended
  Operation operation_;
  std::vector<LaneState> lanes_;  // by falling priority
  std::vector<Flag> flags_;       // of operation ended_ + 1, whose puts may come before it starts
  std::map<uint8_t, int> early_;  // digests of that operation that came before it, and a rank
  uint64_t unfinished_puts_ = 0;
  std::vector<const std::byte*> sources_;  // of the reduction at hand
};

}  // namespace crosstie
