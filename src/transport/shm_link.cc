// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_link.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <new>

namespace crosstie {
namespace {

// How much is copied between two looks at the fence: some 20 microseconds' worth.
constexpr size_t kCopyStep = 256 * 1024;

}  // namespace

bool ShmLink::watch_process() {
  const auto peer = peer_process(socket.get());
  if (!peer || peer->pid <= 0) return false;
  process.reset(
      static_cast<int>(syscall(SYS_pidfd_open, peer->pid, 0)));  // close-on-exec by itself
  return static_cast<bool>(process);
}

Status ShmLink::make_rings(uint64_t entries) {
  auto buffer = Buffer::allocate(2 * half_bytes(entries), "crosstie-rings");
  if (!buffer) return pass(buffer);
  shared_ = std::move(*buffer);
  new (shared_.bytes().data()) ShmHalf;
  new (shared_.bytes().data() + half_bytes(entries)) ShmHalf;
  split(entries, true);
  return {};
}

// The first half is for what the side that made the rings sends.
void ShmLink::split(uint64_t entries, bool ours) {
  const ShmRing first(shared_.bytes().data(), entries);
  const ShmRing second(shared_.bytes().data() + half_bytes(entries), entries);
  out_ = ShmProducer(ours ? first : second);
  in_ = ShmConsumer(ours ? second : first);
}

Status ShmLink::attach_rings(Received& hello) {
  const uint32_t entries = hello.packet.ring;
  if (hello.descriptors.size() != 2 || !std::has_single_bit(entries) || entries < 64 ||
      entries > 65536 || hello.packet.text_bytes > kMaxHello)
    return fail(Code::peer, "handshake: a malformed hello");
  auto buffer = Buffer::attach(std::move(hello.descriptors[0]));
  if (!buffer) return pass(buffer, "handshake");
  if (buffer->bytes().size() < 2 * half_bytes(entries))
    return fail(Code::peer, "handshake: the shared rings are too small");
  shared_ = std::move(*buffer);
  split(entries, false);
  return attach_bell(std::move(hello.descriptors[1]));
}

Status ShmLink::attach_bell(Fd bell) {
  // Ringing it must not block.
  const int flags = fcntl(bell.get(), F_GETFL);
  if (flags < 0 || !(flags & O_NONBLOCK))
    return fail(Code::peer, "handshake: a bell that may block");
  bell_ = std::move(bell);
  return {};
}

Status ShmLink::attach_region(Received& received) {
  const wire::Packet& packet = received.packet;
  if (received.descriptors.size() != 1 || packet.region <= told_)
    return fail(Code::peer, "the peer told of a region in a malformed packet");
  told_ = packet.region;
  auto memory = Buffer::attach(std::move(received.descriptors[0]));
  if (!memory) return pass(memory, "cannot attach the peer's memory");
  const auto region = stretch(memory->bytes(), packet.offset, packet.bytes);
  if (!region) return pass(region, "the peer told of a region beyond its memory");
  regions_.emplace(packet.region, Attached{std::move(*memory), *region});
  return {};
}

void ShmLink::forget_region(uint64_t region) {
  regions_.erase(region);
  told_ = std::max(told_, region);  // its packet may never have come
  forgotten_++;
}

Posted ShmLink::room(uint64_t entries, std::string* why) {
  const auto found = out_.room(entries);
  if (found == ShmProducer::Room::ok) return Posted::ok;
  if (found == ShmProducer::Room::none) {
    wanted_ = wanted_ ? std::min(wanted_, entries) : entries;
    return Posted::again;
  }
  *why = "the ring is corrupt";
  return Posted::error;
}

Posted ShmLink::put(std::span<const std::byte> source, RegionId region, uint64_t to,
                    std::optional<uint32_t> immediate, std::string* why) {
  if (immediate)
    if (const Posted there = room(1, why); there != Posted::ok) return there;
  if (!source.empty())
    if (const Posted written = write(source, region, to, why); written != Posted::ok)
      return written;
  if (immediate) {
    out_.push({ShmEntry::Kind::notification, *immediate}, {});
    wake(kWakeOnEntry);
  }
  return Posted::ok;
}

Posted ShmLink::write(std::span<const std::byte> source, RegionId region, uint64_t to,
                      std::string* why) {
  const auto number = static_cast<uint64_t>(region);
  const auto attached = regions_.find(number);
  if (attached == regions_.end()) {
    if (number > told_) return Posted::again;  // its descriptor is on its way
    *why = fmt::format("a put names region {}, which is not open to peers", number);
    return Posted::error;
  }
  const auto target = stretch(attached->second.region, to, source.size());
  if (!target) {
    *why = target.error().text;
    return Posted::error;
  }
  ShmHalf& half = out_.half();
  // Stored, then the peer's words are loaded; the peer stores its words, then loads this one.
  half.writing.store(number);
  const Posted copied =
      half.deregistered.load() == forgotten_ ? copy(source, target->data(), why) : Posted::again;
  half.writing.store(0);
  if (half.fenced.load() || half.deregistered.load() != forgotten_) ring_bell();
  return copied;
}

Posted ShmLink::copy(std::span<const std::byte> source, std::byte* to, std::string* why) {
  while (!source.empty()) {
    if (out_.half().fenced.load()) {
      *why = "fenced by the peer";
      return Posted::error;
    }
    const auto piece = source.first(std::min(source.size(), kCopyStep));
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
    source = source.subspan(piece.size());
  }
  return Posted::ok;
}

Posted ShmLink::message(std::span<const std::byte> bytes, std::string* why) {
  if (const Posted there = room(entries_of(bytes.size()), why); there != Posted::ok) return there;
  out_.push({ShmEntry::Kind::message, static_cast<uint32_t>(bytes.size())}, bytes);
  wake(kWakeOnEntry);
  return Posted::ok;
}

void ShmLink::wake(uint32_t bits) {
  std::atomic<uint32_t>& wakes = out_.half().wakes;
  if (!(wakes.load() & bits)) return;
  wakes.store(0);
  ring_bell();
}

void ShmLink::ring_bell() {
  const uint64_t one = 1;
  // It fails only when the bell has rung 2^64 - 2 times unheard.
  [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof one);
}

bool ShmLink::arm() {
  in_.half().wakes.store(kWakeOnEntry | (wanted_ ? kWakeOnRoom : Wake{}));
  if (!in_.empty()) return false;
  if (!wanted_ || out_.room(wanted_) == ShmProducer::Room::none) return true;
  wanted_ = 0;  // said once; whoever still wants it asks again
  return false;
}

}  // namespace crosstie
