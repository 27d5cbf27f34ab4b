// SPDX-License-Identifier: Apache-2.0
// Files that are read whole, and topologies by their format.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>

#include "base/deadline.h"
#include "base/handle.h"
#include "topology/format/file.h"
#include "topology/format/formats.h"

namespace crosstie {
namespace {

// Far above any real one: NCCL's files of the largest hosts are under 1 MB, logs of long jobs a
// few.
constexpr off_t kLargest = 64 << 20;

// Of whoever writes into a pipe: a probe of a far host may take a while to say its first word.
constexpr std::chrono::seconds kMostSilence{60};

Status expect_size(off_t bytes) {
  if (bytes <= kLargest) return {};
  return fail(Code::invalid, "is {} bytes long or more; at most {}M are read", bytes,
              kLargest >> 20);
}

Status expect_readable(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(Code::io, "cannot be examined");
  if (S_ISDIR(about.st_mode)) return fail(Code::invalid, "is a directory, not a file");
  if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode))
    return fail(Code::invalid, "is no regular file and no pipe");
  return expect_size(about.st_size);
}

// Files are always ready.
Status await_more(int fd) {
  pollfd readable{fd, POLLIN, 0};
  const int ready = ::poll(&readable, 1, Deadline(kMostSilence).poll_ms());
  if (ready < 0) return fail_errno(Code::io, "cannot be waited for");
  if (ready == 0)
    return fail(Code::timeout, "nothing came through it for {} s", kMostSilence.count());
  return {};
}

Result<std::string> read_to_end(int fd) {
  std::string text;
  std::array<char, 1 << 16> block;
  while (true) {
    if (const Status more = await_more(fd); !more) return pass(more);
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0) return fail_errno(Code::io, "cannot be read");
    if (got == 0) return text;
    text.append(block.data(), static_cast<size_t>(got));
    if (const Status fits = expect_size(static_cast<off_t>(text.size())); !fits) return pass(fits);
  }
}

Result<std::string> read_whole(const std::filesystem::path& file) {
  // Without O_NONBLOCK it would be opened only when somebody opens the other end of a FIFO.
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(Code::io, "cannot be opened");
  if (const Status readable = expect_readable(fd.get()); !readable) return pass(readable);
  auto text = read_to_end(fd.get());
  if (text && text->empty()) return fail(Code::invalid, "is empty");
  return text;
}

Status expect_text(std::string_view text) {
  const size_t zero = text.find('\0');
  if (zero == std::string_view::npos) return {};
  return fail(Code::invalid, "is binary (byte {} is zero), not text", zero);
}

enum class Format { xml, json, toml };

Format format_of(const std::filesystem::path& file, std::string_view text) {
  const std::string suffix = file.extension();
  if (suffix == ".xml") return Format::xml;
  if (suffix == ".json") return Format::json;
  if (suffix == ".toml") return Format::toml;
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const char begin = first == std::string_view::npos ? ' ' : text[first];
  return begin == '<' ? Format::xml : begin == '{' ? Format::json : Format::toml;
}

// TOML of any use has a table or a value.
Status expect_format(const std::filesystem::path& file, Format format, std::string_view text) {
  if (format != Format::toml || file.extension() == ".toml" ||
      text.find_first_of("=[") != text.npos)
    return {};
  return fail(Code::invalid, "is neither XML, JSON nor TOML");
}

// By the name of the root element: the first tag that is no declaration, comment or DOCTYPE.
bool is_hwloc(std::string_view text) {
  for (size_t tag = text.find('<'); tag != text.npos; tag = text.find('<', tag + 1)) {
    const std::string_view rest = text.substr(tag);
    if (rest.starts_with("<!--")) {
      tag = text.find("-->", tag);
      if (tag == text.npos) return false;
    } else if (rest.size() > 1 && rest[1] != '?' && rest[1] != '!') {
      return rest.starts_with("<topology");
    }
  }
  return false;
}

Result<Topology> one_host(Result<Machine> machine) {
  if (!machine) return pass(machine);
  return single_host(std::move(*machine));
}

Result<Topology> read_xml(std::string_view text, std::string source) {
  if (is_hwloc(text)) return one_host(read_hwloc_xml(text, std::move(source)));
  return read_nccl_xml(text, std::move(source));
}

Result<Topology> read_lone_machine(std::string_view text, std::string source) {
  return one_host(read_machine_toml(text, std::move(source)));
}

template <class ReadToml>
Result<Topology> read_file(const std::filesystem::path& file, ReadToml&& read_toml) {
  const auto text = read_text(file);
  if (!text) return pass(text);
  const Format format = format_of(file, *text);
  if (const Status right = expect_format(file, format, *text); !right)
    return pass(right, file.native());
  auto topology = format == Format::json  ? read_json(*text)
                  : format == Format::xml ? read_xml(*text, file.native())
                                          : read_toml(*text, file.native());
  if (!topology) return pass(topology, file.native());
  return topology;
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& file) {
  auto text = read_whole(file);
  if (!text) return pass(text, file.native());
  if (const Status right = expect_text(*text); !right) return pass(right, file.native());
  return text;
}

Result<Topology> read_topology_file(const std::filesystem::path& file) {
  return read_file(file, read_toml);
}

Result<Topology> read_host_file(const std::filesystem::path& file) {
  return read_file(file, read_lone_machine);
}

Result<Overlay> read_overlay_file(const std::filesystem::path& file) {
  const auto text = read_text(file);
  if (!text) return pass(text);
  auto overlay = read_overlay_toml(*text);
  if (!overlay) return pass(overlay, file.native());
  return overlay;
}

}  // namespace crosstie
