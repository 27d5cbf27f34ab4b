// SPDX-License-Identifier: Apache-2.0
// Frames of the meeting's channels, in pieces: whole ones come whole, the rest is an error.
#include "runtime/channel.h"
#include "target.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMost = 1000;
  fuzz::Stream stream;
  Channel channel(std::move(stream.ours), kMost);
  std::string_view rest = fuzz::text_of(data, size);
  // The first byte says how large the pieces are.
  const size_t piece = rest.empty() ? 1 : 1 + static_cast<uint8_t>(rest[0]);
  rest.remove_prefix(std::min<size_t>(1, rest.size()));
  size_t said = 0, heard = 0;
  for (bool open = true; open;) {
    const size_t now = stream.theirs ? stream.say(rest.substr(0, piece)) : 0;
    said += now;
    rest.remove_prefix(now);
    if (rest.empty()) stream.theirs.reset();
    for (;;) {
      const auto frame = channel.receive();
      open = frame.has_value();
      if (!open || !*frame) break;
      PROMISE((*frame)->payload.size() <= kMost);
      heard += 5 + (*frame)->payload.size();
      PROMISE(heard <= said);
    }
  }
  return 0;
}
