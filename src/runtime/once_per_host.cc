// SPDX-License-Identifier: Apache-2.0
// A file that is locked while it is filled or read, so that a process which dies leaves it to the
// next. Others' files are refused, as anyone may write to the folder.
#include "runtime/once_per_host.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>

#include "base/digest.h"
#include "base/handle.h"

namespace crosstie {
namespace {

using std::filesystem::path;

constexpr std::chrono::seconds kFresh{60};
constexpr std::chrono::milliseconds kRetry{1};
constexpr std::string_view kPrefix = "crosstie-once-";

// At the file's beginning; written last, so that it vouches for what follows.
struct Header {
  static constexpr uint64_t kMagic = 0x31656e6f65697463u;  // "ctieone1"
  uint64_t magic = 0;
  int64_t made_at = 0;  // seconds since boot, sleep included
  uint64_t bytes = 0;
  int64_t taken = 0;
};

int64_t seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

// The boot is part of the name for folders that outlive it.
path file_of(const HostShare& share) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return share.folder / fmt::format("{}{}-{:016x}", kPrefix, geteuid(),
                                    Digest().add(boot).add(share.name).value());
}

Result<Fd> open_own(const path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd) return fail_errno(Code::io, file.native());
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return fail_errno(Code::io, file.native());
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    return fail(Code::io, "{} is not a file of this user alone; remove it", file.native());
  return fd;
}

Status lock(const Fd& fd, const path& file, const Deadline& deadline) {
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(Code::io, file.native());
    if (deadline.expired())
      return fail(Code::timeout, "{}: another process has not released it in time", file.native());
    std::this_thread::sleep_for(kRetry);
  }
  return {};
}

bool is_linked(const Fd& fd) {
  struct stat status {};
  return fstat(fd.get(), &status) == 0 && status.st_nlink > 0;
}

// Whoever held the lock before may have removed the file: then it is another one that counts.
Result<Fd> open_locked(const path& file, const Deadline& deadline) {
  for (;;) {
    auto fd = open_own(file);
    if (!fd) return fd;
    if (const Status locked = lock(*fd, file, deadline); !locked) return pass(locked);
    if (is_linked(*fd)) return fd;
  }
}

bool read_all(const Fd& fd, void* to, size_t bytes, off_t at) {
  return pread(fd.get(), to, bytes, at) == static_cast<ssize_t>(bytes);
}
bool write_all(const Fd& fd, const void* from, size_t bytes, off_t at) {
  return pwrite(fd.get(), from, bytes, at) == static_cast<ssize_t>(bytes);
}

// What another process has put there, or nothing.
std::optional<std::string> take(const Fd& fd, Header& header) {
  struct stat status {};
  if (!read_all(fd, &header, sizeof header, 0) || header.magic != Header::kMagic ||
      fstat(fd.get(), &status) != 0 ||
      header.bytes != static_cast<uint64_t>(status.st_size) - sizeof header)
    return std::nullopt;
  if (const int64_t age = seconds_since_boot() - header.made_at; age < 0 || age > kFresh.count())
    return std::nullopt;
  std::string text(header.bytes, '\0');
  if (!read_all(fd, text.data(), text.size(), sizeof header)) return std::nullopt;
  return text;
}

// Where there is no room, the others have to make their own.
Header put(const Fd& fd, std::string_view text) {
  const Header header{Header::kMagic, seconds_since_boot(), text.size(), 0};
  if (ftruncate(fd.get(), 0) != 0 || !write_all(fd, text.data(), text.size(), sizeof header) ||
      !write_all(fd, &header, sizeof header, 0))
    (void)!ftruncate(fd.get(), 0);
  return header;
}

void count_taker(const Fd& fd, Header header, const path& file, int takers) {
  header.taken++;
  if (takers > 0 && header.taken >= takers)
    ::unlink(file.c_str());
  else
    write_all(fd, &header.taken, sizeof header.taken, offsetof(Header, taken));
}

bool is_old(const struct stat& status) {
  return status.st_uid == geteuid() && time(nullptr) - status.st_mtime > kFresh.count();
}

bool is_old(const path& file) {
  struct stat status {};
  return lstat(file.c_str(), &status) == 0 && is_old(status);
}

// Until it is locked, another process may have put a share of today in its place.
bool is_old_still(const path& file, const Fd& fd) {
  struct stat named {
  }, open{};
  return lstat(file.c_str(), &named) == 0 && fstat(fd.get(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino && is_old(open);
}

// What jobs left whose ranks died, or did not know how many they are.
void sweep(const path& folder) {
  const std::string mine = fmt::format("{}{}-", kPrefix, geteuid());
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const path& file = entry->path();
    if (!file.filename().native().starts_with(mine) || !is_old(file)) continue;
    const auto fd = open_own(file);
    if (fd && flock(fd->get(), LOCK_EX | LOCK_NB) == 0 && is_old_still(file, *fd))
      ::unlink(file.c_str());
  }
}

}  // namespace

Result<std::string> once_per_host(const HostShare& share,
                                  const std::function<Result<std::string>()>& make,
                                  Clock::duration timeout) {
  const path file = file_of(share);
  const auto fd = open_locked(file, Deadline(timeout));
  if (!fd) return pass(fd);
  Header header;
  if (auto text = take(*fd, header)) {
    count_taker(*fd, header, file, share.takers);
    return std::move(*text);
  }
  auto text = make();
  if (!text) return text;
  header = put(*fd, *text);
  count_taker(*fd, header, file, share.takers);
  sweep(share.folder);
  return text;
}

}  // namespace crosstie
