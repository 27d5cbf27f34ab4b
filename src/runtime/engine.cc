// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace crosstie {
namespace {

// What a put's 32 bits say: which flag, for which chunk, of which operation, and a digest of what
// the sender takes that operation to be. The low bits of chunk and operation suffice: no flag is
// raised further ahead of its waiter than the window, and no operation is two away, since one
// begins at a peer only after it has told us that the one before is complete.
constexpr uint32_t kFlagBits = 18, kChunkBits = 2, kOperationBits = 4, kDigestBits = 8;
constexpr uint32_t kChunkAt = kFlagBits, kOperationAt = kChunkAt + kChunkBits,
                   kDigestAt = kOperationAt + kOperationBits;
static_assert(kDigestAt + kDigestBits == 32);
constexpr uint32_t kMostFlags = 1u << kFlagBits, kMostWindow = 1u << kChunkBits;
constexpr uint32_t mask(uint32_t bits) { return (1u << bits) - 1; }

constexpr uint64_t kCacheLine = 64;
constexpr uint64_t up_to_line(uint64_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

uint64_t slot_bytes(const Slicer& slicer, Part largest, uint32_t element_size) {
  return std::max(kCacheLine, up_to_line(slicer.most(largest) * element_size));
}

}  // namespace

Result<Cut> cut(const Schedule::Frame& frame, uint64_t elements, uint32_t element_size,
                uint64_t chunk_bytes, uint64_t scratch_bytes) {
  const uint64_t copies = std::max<uint64_t>(1, uint64_t{frame.slots} * frame.window);
  if (copies * kCacheLine > scratch_bytes || frame.flags >= kMostFlags ||
      frame.window > kMostWindow)
    return fail(Code::exhausted, "{} over {} ranks needs at least {} bytes of CROSSTIE_SCRATCH",
                name(frame.algorithm), frame.ranks, copies * kCacheLine);
  const uint64_t most =
      std::clamp(scratch_bytes / copies, kCacheLine, std::max(chunk_bytes, kCacheLine));
  const auto part_bytes =
      static_cast<uint64_t>(static_cast<double>(elements) * element_size *
                            (frame.largest.end - frame.largest.begin) / frame.largest.of);
  // The slicer rounds to lines, so the first guess may be a little short.
  for (uint64_t chunks = std::max<uint64_t>(1, part_bytes / most);; chunks += 1 + chunks / 16) {
    if (chunks > UINT32_MAX) return fail(Code::unsupported, "{} elements are too many", elements);
    const Slicer slicer(elements, element_size, static_cast<uint32_t>(chunks));
    const uint64_t bytes = slot_bytes(slicer, frame.largest, element_size);
    if (bytes <= most) return Cut{slicer, bytes};
  }
}

Status Engine::start(Operation operation) {
  operation_ = std::move(operation);
  running_ = true;
  lanes_.clear();
  for (const Lane& lane : operation_.program->lanes) lanes_.push_back({&lane, 0, 0});
  std::stable_sort(lanes_.begin(), lanes_.end(), [](const LaneState& a, const LaneState& b) {
    return a.lane->priority > b.lane->priority;
  });
  for (const auto& [digest, rank] : std::exchange(early_, {}))
    if (const Status same = check_digest(rank, digest); !same) return same;
  return {};
}

bool Engine::advance(Links& links) {
  bool moved = false;
  for (LaneState& lane : lanes_) moved |= run(lane, links);
  return moved;
}

bool Engine::run(LaneState& state, Links& links) {
  const std::vector<Step>& steps = state.lane->steps;
  bool moved = false;
  while (state.chunk < operation_.cut.slicer.chunks()) {
    for (; state.step < steps.size(); state.step++, moved = true) {
      const auto go = [&](const auto& step) { return execute(step, state.chunk, links); };
      if (!std::visit(go, steps[state.step])) return moved;
    }
    state.step = 0;
    state.chunk++;
  }
  return moved;
}

bool Engine::finished() const {
  const auto ended = [this](const LaneState& s) {
    return s.chunk == operation_.cut.slicer.chunks();
  };
  return unfinished_puts_ == 0 && std::all_of(lanes_.begin(), lanes_.end(), ended);
}

void Engine::end() {
  ended_ = operation_.number;
  running_ = false;
  unfinished_puts_ = 0;
  std::fill(flags_.begin(), flags_.end(), Flag{});
}

bool Engine::execute(const Wait& step, uint32_t chunk, Links&) {
  return flag(step.flag).raised + step.lag >= chunk + 1;
}

bool Engine::waits_for(const std::set<uint32_t>& flags) const {
  const auto stuck = [&](const LaneState& state) {
    if (state.chunk == operation_.cut.slicer.chunks()) return false;  // has ended
    const auto* wait = std::get_if<Wait>(&state.lane->steps[state.step]);
    return wait && flags.contains(wait->flag);
  };
  return std::any_of(lanes_.begin(), lanes_.end(), stuck);
}

bool Engine::execute(const Put& step, uint32_t chunk, Links& links) {
  const uint64_t bytes = count(step.part, chunk) * size_of(operation_.type);
  const Posted posted = links.put(
      static_cast<int>(step.peer), step.from.space, offset(step.part, step.from, chunk), bytes,
      slot_offset(step.slot, chunk), immediate(step.flag, chunk), operation_.number);
  if (posted != Posted::ok) return false;  // of an error the Links tell
  if (bytes > 0) unfinished_puts_++;
  return true;
}

bool Engine::execute(const Signal& step, uint32_t chunk, Links& links) {
  if (step.peer == rank_) {
    raise(step.flag, chunk);
    return true;
  }
  return links.put(static_cast<int>(step.peer), Space::scratch, 0, 0, 0,
                   immediate(step.flag, chunk), operation_.number) == Posted::ok;
}

bool Engine::execute(const Copy& step, uint32_t chunk, Links&) {
  std::byte* to = memory(step.part, step.to, chunk);
  const std::byte* from = memory(step.part, step.from, chunk);
  const uint64_t bytes = count(step.part, chunk) * size_of(operation_.type);
  if (to != from && bytes > 0) memcpy(to, from, bytes);
  return true;
}

bool Engine::execute(const Reduce& step, uint32_t chunk, Links&) {
  sources_.clear();
  for (uint32_t i = 0; i < step.count; i++)
    sources_.push_back(memory(step.part, operation_.program->sources[step.first + i], chunk));
  reduce(operation_.type, memory(step.part, step.to, chunk), sources_, count(step.part, chunk));
  return true;
}

uint64_t Engine::slot_offset(uint32_t slot, uint32_t chunk) const {
  const uint32_t window = operation_.frame.window;
  return (uint64_t{slot} * window + chunk % window) * operation_.cut.slot_bytes;
}

uint64_t Engine::offset(Part part, Place place, uint32_t chunk) const {
  if (place.space == Space::scratch) return slot_offset(place.slot, chunk);
  return operation_.cut.slicer.range(part, chunk).first * size_of(operation_.type);
}

std::byte* Engine::memory(Part part, Place place, uint32_t chunk) const {
  std::byte* base = place.space == Space::in    ? operation_.in
                    : place.space == Space::out ? operation_.out
                                                : operation_.scratch.data();
  return base + offset(part, place, chunk);
}

uint32_t Engine::immediate(uint32_t flag, uint32_t chunk) const {
  const auto operation = static_cast<uint32_t>(operation_.number) & mask(kOperationBits);
  return uint32_t{operation_.digest} << kDigestAt | operation << kOperationAt |
         (chunk & mask(kChunkBits)) << kChunkAt | flag;
}

Status Engine::notified(int rank, uint32_t immediate) {
  const uint32_t of = immediate >> kOperationAt;
  // Distance to the operation whose flags we hold: 0, or behind it.
  const uint32_t ahead = (of - static_cast<uint32_t>(ended_ + 1)) & mask(kOperationBits);
  if (ahead != 0) return {};  // a credit that nobody waited for any more
  const auto digest = static_cast<uint8_t>(immediate >> kDigestAt);
  raise(immediate & mask(kFlagBits), immediate >> kChunkAt);
  if (running_) return check_digest(rank, digest);
  early_.emplace(digest, rank);
  return {};
}

Status Engine::check_digest(int rank, uint8_t digest) const {
  if (digest == operation_.digest) return {};
  return tl::unexpected<Error>(
      {Code::peer,
       fmt::format("takes collective {} for another one than rank {} does: their count, type, "
                   "algorithm or check differ",
                   operation_.number, rank_),
       rank});
}

// `chunk`: its low bits will do.
void Engine::raise(uint32_t index, uint32_t chunk) {
  Flag& f = flag(index);
  f.early |= 1u << ((chunk - f.raised) & mask(kChunkBits));
  for (; f.early & 1; f.early >>= 1) f.raised++;
}

Engine::Flag& Engine::flag(uint32_t index) {
  if (index >= flags_.size()) flags_.resize(index + 1);
  return flags_[index];
}

std::set<uint32_t> Engine::flags_raised(const Program& peers, int self) {
  std::set<uint32_t> flags;
  for (const Lane& lane : peers.lanes)
    for (const Step& step : lane.steps) {
      const auto* put = std::get_if<Put>(&step);
      const auto* signal = std::get_if<Signal>(&step);
      if (put && static_cast<int>(put->peer) == self) flags.insert(put->flag);
      if (signal && static_cast<int>(signal->peer) == self) flags.insert(signal->flag);
    }
  return flags;
}

std::vector<int> Engine::peers(const Program& program, int self) {
  std::set<int> peers;
  for (const Lane& lane : program.lanes)
    for (const Step& step : lane.steps) {
      if (const auto* put = std::get_if<Put>(&step)) peers.insert(static_cast<int>(put->peer));
      if (const auto* signal = std::get_if<Signal>(&step))
        peers.insert(static_cast<int>(signal->peer));
    }
  peers.erase(self);
  return {peers.begin(), peers.end()};
}

}  // namespace crosstie
