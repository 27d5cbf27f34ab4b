// SPDX-License-Identifier: Apache-2.0
// What the targets share: the entry in libFuzzer's form, and a promise that ends the program when
// it is not kept.
#pragma once
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/handle.h"

#define PROMISE(condition) \
  ((condition)             \
       ? void()            \
       : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::abort()))

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace crosstie::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Both ends of a stream: a worker's, non-blocking, and that of who talks to it.
struct Stream {
  Stream() {
    int ends[2];
    PROMISE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  // As much as fits.
  size_t say(std::string_view bytes) const {
    const ssize_t sent = send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  Fd ours, theirs;
};

}  // namespace crosstie::fuzz
