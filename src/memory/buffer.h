// SPDX-License-Identifier: Apache-2.0
// Memory that other processes of the host can map: a memfd, gone with its last user, with no
// name in /dev/shm to be left behind.
#pragma once
#include <cstddef>
#include <span>

#include "base/handle.h"
#include "base/result.h"

namespace crosstie {

// A stretch of memory as a transport sees it.
struct MemoryView {
  std::span<std::byte> bytes;
  int fd = -1;           // descriptor of the mapping it lies in, or -1 for plain memory
  size_t fd_offset = 0;  // where `bytes` begins in it
};

// A mapping of a memfd. Move-only.
class Buffer {
 public:
  // Zeroed, page-aligned, close-on-exec, sealed against a change of size. `label` is what
  // /proc/PID/maps shows.
  static Result<Buffer> allocate(size_t bytes, const char* label);
  // Maps another process's memfd in whole. Refuses one that its owner could truncate, since
  // touching it could then kill us (SIGBUS). A mapping needs no descriptor: `fd` is closed and
  // fd() is -1.
  static Result<Buffer> attach(Fd fd);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  MemoryView view() const { return {bytes_, fd_.get(), 0}; }

 private:
  Buffer(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  Fd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace crosstie
