// SPDX-License-Identifier: Apache-2.0
// A peer's TCP stream after the handshake, in pieces: it writes within the regions that are open
// to it, or fails.
#include "target.h"
#include "transport/tcp_receiver.h"

using namespace crosstie;

namespace {

constexpr size_t kRegion = 512;

// Regions 1, open to peers, and 2, which is not, in memory between what must not change.
struct Memory {
  Memory() : bytes(5 * kRegion) {
    const auto all = std::span(bytes);
    regions.add({all.subspan(kRegion, kRegion)}, Access::remote);
    regions.add({all.subspan(3 * kRegion, kRegion)}, Access::local);
  }
  bool untouched() const {
    for (size_t i = 0; i < bytes.size(); i++)
      if (i / kRegion != 1 && bytes[i] != std::byte{0}) return false;
    return true;
  }
  std::vector<std::byte> bytes;
  Regions regions;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Memory memory;
  fuzz::Stream stream;
  TcpReceiver receiver;
  Events events;
  std::vector<Event> all;
  std::string_view rest = fuzz::text_of(data, size);
  // The first byte says how large the pieces are, and the budget of a poll.
  const size_t piece = rest.empty() ? 1 : 1 + static_cast<uint8_t>(rest[0]) * 16;
  rest.remove_prefix(std::min<size_t>(1, rest.size()));
  const size_t frames = size / sizeof(wire::Frame);
  for (;;) {
    const size_t now = stream.theirs ? stream.say(rest.substr(0, piece)) : 0;
    rest.remove_prefix(now);
    if (rest.empty()) stream.theirs.reset();
    const auto received = receiver.receive(stream.ours.get(), piece / 2 + 1, memory.regions,
                                           static_cast<EndpointId>(1), events);
    PROMISE(memory.untouched());
    events.hand_over(all);
    PROMISE(all.size() <= frames);
    if (!received) break;
    if (*received != TcpReceiver::Received::ended) continue;
    PROMISE(!receiver.farewell().empty());
    break;
  }
  for (const Event& event : all) PROMISE(event.bytes.size() <= kMaxMessage);
  return 0;
}
