// SPDX-License-Identifier: Apache-2.0
#include "schedule/symbolic_memory.h"

#include <bit>

namespace crosstie {

Contributions Contributions::of(uint32_t rank, uint32_t ranks) {
  Contributions one;
  one.words_.resize((size_t{ranks} + 63) / 64);
  one.words_[rank / 64] = uint64_t{1} << (rank % 64);
  return one;
}

std::optional<uint32_t> Contributions::add(const Contributions& other) {
  for (size_t i = 0; i < words_.size(); i++) {
    if (const uint64_t both = words_[i] & other.words_[i])
      return static_cast<uint32_t>(64 * i + std::countr_zero(both));
    words_[i] |= other.words_[i];
  }
  return std::nullopt;
}

std::optional<uint32_t> Contributions::first_missing(uint32_t ranks) const {
  for (uint32_t rank = 0; rank < ranks; rank++)
    if (empty() || !(words_[rank / 64] >> (rank % 64) & 1)) return rank;
  return std::nullopt;
}

namespace {

Status race(const char* verb, const char* other_verb, const Access& other) {
  return fail(Code::internal, "{} what may still be {} by {}", verb, other_verb,
              to_text(other.site, other.chunk));
}

}  // namespace

Status Traces::read(const Access& access, const Clock& clock) {
  if (write_ && !write_->is_before(clock)) return race("reads", "written", *write_);
  reads_.push_back(access);
  return {};
}

Status Traces::write(const Access& access, const Clock& clock) {
  if (write_ && !write_->is_before(clock)) return race("overwrites", "written", *write_);
  for (const Access& read : reads_)
    if (!read.is_before(clock)) return race("overwrites", "read", read);
  reads_.clear();
  write_ = access;
  return {};
}

SymbolicMemory::SymbolicMemory(const Schedule::Frame& frame, const Atoms& atoms, uint32_t chunks,
                               bool in_place)
    : frame_(frame),
      atoms_(atoms),
      chunks_(chunks),
      in_place_(in_place),
      outs_(size_t{frame.ranks} * chunks * atoms.count()),
      slots_(size_t{frame.ranks} * frame.slots * frame.window) {
  if (!in_place) return;
  const size_t of_a_rank = chunks * atoms.count();
  for (size_t i = 0; i < outs_.size(); i++)
    outs_[i].value = Contributions::of(static_cast<uint32_t>(i / of_a_rank), frame.ranks);
}

Result<SymbolicMemory::Values> SymbolicMemory::read(uint32_t rank, Part part, Place place,
                                                    const Access& access, const Clock& clock) {
  if (place.space == Space::scratch) return read_slot(rank, part, place.slot, access, clock);
  const Atoms::Interval interval = atoms_.of(part);
  if (place.space == Space::in && !in_place_)
    return Values(interval.size(), Contributions::of(rank, frame_.ranks));
  Values values;
  for (size_t atom = interval.begin; atom < interval.end; atom++) {
    Cell& cell = out(rank, access.chunk, atom);
    if (cell.value.empty())
      return fail(Code::internal, "reads {} of out, which nothing has written", atoms_.text(atom));
    if (const Status read = cell.traces.read(access, clock); !read)
      return pass(read, fmt::format("out {}", atoms_.text(atom)));
    values.push_back(cell.value);
  }
  return values;
}

Result<SymbolicMemory::Values> SymbolicMemory::read_slot(uint32_t rank, Part part, uint32_t number,
                                                         const Access& access, const Clock& clock) {
  Slot& slot = this->slot(rank, number, access.chunk);
  if (slot.values.empty())
    return fail(Code::internal, "reads slot {}, which nothing has written", number);
  if (const Status read = slot.traces.read(access, clock); !read)
    return pass(read, fmt::format("slot {}", number));
  if (!is_same(slot.part, part) || slot.chunk != access.chunk)
    return fail(Code::internal, "reads {} from slot {}, which holds {} of chunk {}", to_text(part),
                number, to_text(slot.part), slot.chunk);
  return slot.values;
}

Status SymbolicMemory::write(uint32_t rank, Part part, Place place, Values values,
                             const Access& access, const Clock& clock) {
  if (place.space == Space::scratch)
    return write_slot(rank, part, place.slot, std::move(values), access, clock);
  const size_t first = atoms_.of(part).begin;
  for (size_t i = 0; i < values.size(); i++) {
    Cell& cell = out(rank, access.chunk, first + i);
    if (const Status write = cell.traces.write(access, clock); !write)
      return pass(write, fmt::format("out {}", atoms_.text(first + i)));
    cell.value = std::move(values[i]);
  }
  return {};
}

Status SymbolicMemory::write_slot(uint32_t rank, Part part, uint32_t number, Values values,
                                  const Access& access, const Clock& clock) {
  Slot& slot = this->slot(rank, number, access.chunk);
  if (const Status write = slot.traces.write(access, clock); !write)
    return pass(write, fmt::format("slot {} of rank {}", number, rank));
  slot.part = part;
  slot.chunk = access.chunk;
  slot.values = std::move(values);
  return {};
}

Status SymbolicMemory::check_all_reduced() const {
  for (size_t i = 0; i < outs_.size(); i++) {
    const auto missing = outs_[i].value.first_missing(frame_.ranks);
    if (!missing) continue;
    const size_t atom = i % atoms_.count(), chunk = i / atoms_.count() % chunks_;
    return fail(Code::internal, "rank {}, chunk {}: {} of out lacks the contribution of rank {}",
                i / atoms_.count() / chunks_, chunk, atoms_.text(atom), *missing);
  }
  return {};
}

}  // namespace crosstie
