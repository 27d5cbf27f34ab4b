// SPDX-License-Identifier: Apache-2.0
// What strangers say first on a TCP connection, in pieces: a hello or a welcome that is meant for
// us, or a failure no later than its last byte.
#include "target.h"
#include "transport/tcp_link.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kNonce = 0x0102030405060708;
  fuzz::Stream stream;
  TcpLink link;
  link.socket = std::move(stream.ours);
  std::string_view rest = fuzz::text_of(data, size);
  // The first byte says what is awaited and how large the pieces are.
  const uint8_t how = rest.empty() ? 0 : static_cast<uint8_t>(rest[0]);
  rest.remove_prefix(std::min<size_t>(1, rest.size()));
  const bool awaits_hello = how % 2 == 0;
  for (size_t heard = 0;;) {
    const size_t now = stream.theirs ? stream.say(rest.substr(0, 1 + how / 2)) : 0;
    rest.remove_prefix(now);
    heard += now;
    if (rest.empty()) stream.theirs.reset();
    const auto complete = awaits_hello ? link.hear_hello(kNonce) : link.hear_welcome();
    PROMISE(link.heard <= (awaits_hello ? sizeof link.hello : sizeof link.welcome));
    PROMISE(link.heard <= heard);
    if (!complete) break;
    if (!*complete) continue;
    PROMISE(!awaits_hello || (link.hello.to == kNonce && link.hello.hello_bytes <= kMaxHello));
    break;
  }
  return 0;
}
