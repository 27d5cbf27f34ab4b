// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace crosstie {
namespace {

// No size change, and no further seals that would change what a mapping may do.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<std::span<std::byte>> map(int fd, size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    return fail_errno(Code::exhausted, fmt::format("cannot map {} bytes of shared memory", bytes));
  return std::span(static_cast<std::byte*>(at), bytes);
}

}  // namespace

Result<Buffer> Buffer::allocate(size_t bytes, const char* label) {
  const auto cannot = [&] {
    return fail_errno(Code::exhausted,
                      fmt::format("cannot allocate {} bytes of shared memory ({})", bytes, label));
  };
  if (bytes == 0) return fail(Code::invalid, "a shared buffer ({}) cannot be empty", label);
  Fd fd(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return cannot();
  const auto mapped = map(fd.get(), bytes);
  if (!mapped) return pass(mapped, label);
  return Buffer(std::move(fd), *mapped);
}

Result<Buffer> Buffer::attach(Fd fd) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK))
    return fail(Code::peer, "the descriptor is not of memory that is sealed against shrinking");
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0) return fail_errno(Code::io, "fstat of shared memory");
  const auto mapped = map(fd.get(), static_cast<size_t>(status.st_size));
  if (!mapped) return pass(mapped);
  return Buffer(Fd(), *mapped);
}

Buffer::Buffer(Buffer&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace crosstie
