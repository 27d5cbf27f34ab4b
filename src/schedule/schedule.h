// SPDX-License-Identifier: Apache-2.0
// A collective as data. A Schedule is a pure function of (collective, algorithm, Shape). It
// holds neither bytes nor chunk counts; it yields one rank's Program on request. The same
// Schedule is proved (prover.h), priced (traffic.h) and executed (runtime/engine).
//
// At call time the message is cut into K chunks; every lane runs its steps for chunk 0, then
// for chunk 1, … The slicer (slicer.h) says which elements a part of a chunk holds.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/words.h"
#include "topology/shape.h"

namespace crosstie {

// The fraction [begin/of, end/of) of a chunk. Equal fractions are equal whatever the
// denominator, so shards can be divided again: half of the third quarter is {4, 5, 8}.
struct Part {
  uint32_t begin = 0, end = 1, of = 1;
};

// The i-th of n equal parts.
constexpr Part nth(uint32_t i, uint32_t n) { return {i, i + 1, n}; }
// The i-th of n equal parts of a part.
constexpr Part nth_of(Part part, uint32_t i, uint32_t n) {
  const uint32_t length = part.end - part.begin;
  return {part.begin * n + i * length, part.begin * n + (i + 1) * length, part.of * n};
}

// Memory of a rank. A step says of which part of it.
enum class Space : uint8_t {
  in,       // the caller's input
  out,      // the caller's result; may be the same memory as `in`
  scratch,  // slot `slot`, of which there are `window` copies: chunk c lies in copy c mod window
};
struct Place {
  Space space : 8 = Space::in;
  uint32_t slot : 24 = 0;
};
inline constexpr Place kIn{Space::in, 0}, kOut{Space::out, 0};
constexpr Place in_slot(uint32_t slot) { return {Space::scratch, slot}; }

// Until flag ≥ chunk + 1 − lag. Lag 0 waits for what belongs to this chunk; lag = window waits
// until a slot's copy is free again. Flags are counters that belong to the rank that waits; each
// step that raises one raises it by one a chunk, and no two steps raise the same flag. A flag's
// raises count in the order of the chunks: where puts may land in any order, the engine holds
// back a raise until those of the chunks before have come. At most `window` of them are
// outstanding, so chunk mod window tells them apart.
struct Wait {
  uint32_t flag = 0;
  uint32_t lag = 0;
};
// Write a part to a slot of the peer's scratch, then raise the peer's flag. The put lasts until
// that raise: `from` may be read and the slot written at any time before it. A slot holds one part
// at a time and is read as the part it was written as.
struct Put {
  uint32_t peer = 0;
  uint32_t flag = 0;
  Part part;
  Place from;
  uint32_t slot = 0;
};
// Raise a flag of the peer, which may be this rank itself.
struct Signal {
  uint32_t peer = 0;
  uint32_t flag = 0;
};
// `to` and `from` may be the same memory (in place).
struct Copy {
  Part part;
  Place to, from;
};
// `to` = the reduction of Program::sources[first, first + count) in the order listed. `to` may
// also be one of the sources (it is, in place), so whoever reduces reads an element of all sources
// before he writes it.
struct Reduce {
  Part part;
  Place to;
  uint32_t first = 0, count = 0;
};
using Step = std::variant<Wait, Put, Signal, Copy, Reduce>;
static_assert(sizeof(Step) == 32, "a large Program is mostly Steps, and made in milliseconds");

// An independent program counter. Of the lanes that can go on, the engine runs the one with
// the highest priority first.
struct Lane {
  int priority = 0;
  std::vector<Step> steps;
};

struct Program {
  std::vector<Lane> lanes;
  std::vector<Place> sources;
};

class Schedule {
 public:
  // What holds for all ranks.
  struct Frame {
    Collective collective = Collective::all_reduce;
    Algorithm algorithm = Algorithm::ring;
    uint32_t ranks = 1;
    uint32_t window = 1;  // copies of each scratch slot
    uint32_t slots = 0;   // the most scratch slots that any rank's Program uses
    uint32_t flags = 0;   // the most flags that any rank's Program uses
    Part largest;         // no put, copy or reduction is of a larger part
  };
  using Generator = std::function<Program(uint32_t rank)>;

  Schedule(Frame frame, Generator generator) : frame_(frame), generator_(std::move(generator)) {}

  const Frame& frame() const { return frame_; }
  // Only this rank's steps are made. Thread-safe.
  Program program(uint32_t rank) const { return generator_(rank); }

 private:
  Frame frame_;
  Generator generator_;
};

// Fails with Code::unsupported for an algorithm that is not one of ours. The Shape is shared
// with the Schedule.
Result<Schedule> make_schedule(Collective collective, Algorithm algorithm,
                               std::shared_ptr<const Shape> shape);

// One file per algorithm.
Schedule ring_all_reduce(std::shared_ptr<const Shape> shape);
Schedule hierarchical_all_reduce(std::shared_ptr<const Shape> shape);

}  // namespace crosstie
