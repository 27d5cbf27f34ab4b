// SPDX-License-Identifier: Apache-2.0
// Where the data goes: standard output, or a file that is there whole or not at all.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/deadline.h"
#include "base/handle.h"
#include "command.h"

namespace crosstie::tools {
namespace {

namespace fs = std::filesystem;

// Of whoever reads a pipe: as long as one waits for who writes into one.
constexpr std::chrono::seconds kMostSilence{60};

Status await_reader(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  if (::poll(&writable, 1, Deadline(kMostSilence).poll_ms()) != 0) return {};
  return fail(Code::timeout, "nobody read from it for {} s", kMostSilence.count());
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      if (const Status ready = await_reader(fd); !ready) return ready;
      continue;
    }
    if (written < 0 && errno == EPIPE) return fail(Code::io, "its reader left");
    if (written < 0) return fail_errno(Code::io, "cannot be written");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// Devices, sockets and FIFOs. Without O_NONBLOCK a FIFO would wait for its reader, and a full one
// for ever. That the reader left is an error here, of which a line tells.
Status write_special(const fs::path& file, std::string_view text) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd && errno == ENXIO) return fail(Code::io, "is a FIFO that nobody reads, or no device");
  if (!fd) return fail_errno(Code::io, "cannot be opened for writing");
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const Status written = write_all(fd.get(), text);
  ::signal(SIGPIPE, before);
  return written;
}

// Beside the file, so that the rename stays within one file system; made anew, so that nobody's
// link is followed.
Status write_regular(const fs::path& file, std::string_view text, mode_t mode) {
  if (!file.has_filename()) return fail(Code::io, "names no file");
  fs::path draft = file;
  draft.replace_filename(fmt::format(".crosstie.{}", ::getpid()));
  Fd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd)
    return fail_errno(Code::io, errno == EACCES ? "no file can be made in its directory"
                                                : "cannot be opened for writing");
  const Status written = write_all(fd.get(), text);
  fd.reset();
  if (written && ::rename(draft.c_str(), file.c_str()) == 0) return {};
  const Status failed = written ? Status(fail_errno(Code::io, "cannot be replaced")) : written;
  ::unlink(draft.c_str());
  return failed;
}

// A link stays, and what it names is made.
fs::path named_by(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::read_symlink(file, error);
  return error ? file : file.parent_path() / target;
}

bool is_stdout(const struct stat& about) {
  struct stat out {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == about.st_dev &&
         out.st_ino == about.st_ino;
}

Status write_file(const std::string& file, std::string_view text) {
  constexpr mode_t kPermissions = 0777, kNew = 0666;
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return write_regular(named_by(file), text, kNew);
  // As /dev/stdout: where the shell appends to a file, so do we.
  if (is_stdout(about)) return write_all(STDOUT_FILENO, text);
  if (!S_ISREG(about.st_mode)) return write_special(file, text);
  if (::access(file.c_str(), W_OK) != 0)
    return fail_errno(Code::io, "cannot be opened for writing");
  std::error_code error;
  const fs::path target = fs::canonical(file, error);  // a link stays, its target is replaced
  return write_regular(error ? fs::path(file) : target, text, about.st_mode & kPermissions);
}

}  // namespace

bool reader_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int flushed(int code, const Log& log) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (reader_left()) return kReaderLeft;
  log.error("standard output: cannot be written");
  return kCouldNotLook;
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status expect_apart(const std::string& output, const std::vector<std::string>& read) {
  std::error_code none;
  if (output == "-" || !fs::is_regular_file(output, none)) return {};
  for (const std::string& file : read)
    if (fs::equivalent(output, file, none))
      return fail(Code::invalid,
                  "-o {}: is what is read ({}), and would be lost; give another file", output,
                  file);
  return {};
}

Status write_output(const std::string& to, std::string_view text) {
  if (to.empty()) return fail(Code::invalid, "--output '' names no file; give one, or -");
  const bool standard = to == "-";
  const Status written = standard ? write_all(STDOUT_FILENO, text) : write_file(to, text);
  return written ? written : pass(written, standard ? "standard output" : to);
}

}  // namespace crosstie::tools
