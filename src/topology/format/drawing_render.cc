// SPDX-License-Identifier: Apache-2.0
// Graphviz at work, in a child process: its layouts have no bound on their time, it leaks, and the
// libraries beneath it (fontconfig, Pango) write to stderr what its own handler never sees.
#include <fcntl.h>
#include <graphviz/gvc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <optional>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/printable.h"
#include "topology/format/drawing.h"

namespace crosstie {
namespace {

// A host takes a tenth of a second; what takes so long nobody could read.
constexpr auto kLongest = std::chrono::seconds(60);

struct GraphTraits {
  using type = graph_t*;
  static constexpr graph_t* none = nullptr;
  static void close(graph_t* graph) { agclose(graph); }
};
struct ContextTraits {
  using type = GVC_t*;
  static constexpr GVC_t* none = nullptr;
  static void close(GVC_t* context) { gvFreeContext(context); }
};

tl::unexpected<Error> graphviz_error(std::string_view what) {
  const char* const why = aglasterr();
  std::string text = why == nullptr ? "it does not say why" : why;
  text.erase(text.find_last_not_of(" \n") + 1);
  return fail(Code::unsupported, "Graphviz cannot {}: {}", what, printable(text));
}

Result<std::string> render(const std::string& text, Picture picture) {
  agseterr(AGMAX);  // messages are kept, not printed
  const Handle<ContextTraits> context(gvContext());
  const Handle<GraphTraits> graph(agmemread(text.c_str()));
  if (!graph) return graphviz_error("read our text");
  if (gvLayout(context.get(), graph.get(), "dot") != 0) return graphviz_error("lay it out");
  char* bytes = nullptr;
  unsigned int size = 0;
  const std::string format(name(picture));
  if (gvRenderData(context.get(), graph.get(), format.c_str(), &bytes, &size) != 0)
    return graphviz_error("write " + format);
  std::string out(bytes, size);
  gvFreeRenderData(bytes);
  gvFreeLayout(context.get(), graph.get());
  return out;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Its output is the picture, or the error if it says so by its exit status.
[[noreturn]] void work_as_child(pid_t parent, int output, const std::string& text,
                                Picture picture) {
  // With the parent it ends too, also if that was before it could say so.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  const Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(nowhere.get(), STDERR_FILENO);
  const auto drawn = render(text, picture);
  const bool passed_on = write_all(output, drawn ? *drawn : drawn.error().text);
  ::_exit(drawn && passed_on ? 0 : 1);
}

Result<std::string> read_until_end(int fd, Deadline deadline) {
  std::string out;
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, deadline.poll_ms());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return fail_errno(Code::io, "Graphviz's output cannot be waited for");
    if (ready == 0)
      return fail(Code::timeout,
                  "Graphviz takes longer than {} s; write .dot and give it to a layout for large "
                  "graphs, as sfdp",
                  kLongest.count());
    char buffer[1 << 16];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno != EINTR) return fail_errno(Code::io, "Graphviz's output cannot be read");
    if (got == 0) return out;
    if (got > 0) out.append(buffer, static_cast<size_t>(got));
  }
}

// None where a caller that ignores SIGCHLD has the kernel throw it away.
std::optional<int> end_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return status;
}

}  // namespace

Result<std::string> drawing(const Topology& topology, Picture picture) {
  const std::string text = dot_text(topology);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Code::io, "no pipe for Graphviz");
  const Fd input(ends[0]);
  Fd output(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(Code::io, "no process for Graphviz");
  if (child == 0) work_as_child(parent, output.get(), text, picture);
  output.reset();
  auto drawn = read_until_end(input.get(), Deadline(kLongest));
  if (!drawn) ::kill(child, SIGKILL);
  const auto status = end_of(child);
  if (!drawn) return drawn;
  if (!status)
    return fail(Code::unsupported,
                "whether Graphviz did well is not known, as SIGCHLD is ignored; write .dot and run "
                "dot -T{}",
                name(picture));
  if (WIFSIGNALED(*status))
    return fail(Code::unsupported, "Graphviz was ended by signal {}; write .dot and run dot -T{}",
                WTERMSIG(*status), name(picture));
  if (WEXITSTATUS(*status) != 0) return fail(Code::unsupported, "{}", *drawn);
  return drawn;
}

}  // namespace crosstie
