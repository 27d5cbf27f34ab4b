// SPDX-License-Identifier: Apache-2.0
// Real processes that find something out together.
#include "runtime/once_per_host.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/handle.h"

using namespace crosstie;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr auto kTimeout = 60s;
const std::string kFound(100'000, 'x');

struct Folder {
  Folder() {
    std::string made = (fs::temp_directory_path() / "crosstie-once-XXXXXX").string();
    cr_assert(mkdtemp(made.data()) != nullptr);
    root = made;
    fs::create_directory(root / "shared");
  }
  ~Folder() { fs::remove_all(root); }

  HostShare share(int takers = 0) const { return {"a job", takers, root / "shared"}; }
  // Leaves a byte behind for every time that it was asked.
  std::function<Result<std::string>()> make() const {
    return [this]() -> Result<std::string> {
      const Fd fd(open((root / "made").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
      cr_assert(write(fd.get(), "x", 1) == 1);
      std::this_thread::sleep_for(50ms);
      return kFound;
    };
  }
  uintmax_t made() const { return fs::exists(root / "made") ? fs::file_size(root / "made") : 0; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root / "shared")) files.push_back(entry.path());
    return files;
  }
  void take() const {
    const auto text = once_per_host(share(), make(), kTimeout);
    cr_assert(text && *text == kFound, "%s", text ? "it is another" : text.error().text.c_str());
  }

  fs::path root;
};

pid_t start(const std::function<bool()>& act) {
  const pid_t child = fork();
  cr_assert(child >= 0);
  if (child == 0) _exit(act() ? 0 : 1);
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void overwrite(const fs::path& file, off_t at, const void* bytes, size_t count) {
  const Fd fd(open(file.c_str(), O_WRONLY));
  cr_assert(pwrite(fd.get(), bytes, count, at) == static_cast<ssize_t>(count));
}

}  // namespace

Test(once_per_host, sixty_four_processes_find_out_once_and_leave_nothing) {
  constexpr int kProcesses = 64;
  const Folder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; i++)
    children.push_back(start([&] {
      const auto text = once_per_host(folder.share(kProcesses), folder.make(), kTimeout);
      return text && *text == kFound;
    }));
  for (const pid_t child : children) cr_assert(ended_well(child));
  cr_assert(folder.made() == 1, "found out %ju times", folder.made());
  cr_assert(folder.files().empty());
}

Test(once_per_host, another_job_finds_out_for_itself) {
  const Folder folder;
  folder.take();
  HostShare other = folder.share();
  other.name = "another job";
  cr_assert(once_per_host(other, folder.make(), kTimeout).has_value());
  cr_assert(folder.made() == 2);
}

Test(once_per_host, who_dies_while_finding_out_leaves_it_to_the_next) {
  const Folder folder;
  int ready[2];
  cr_assert(pipe(ready) == 0);
  const pid_t child = start([&] {
    const auto stuck = [&]() -> Result<std::string> {
      [[maybe_unused]] const auto written = write(ready[1], "x", 1);
      pause();
      return kFound;
    };
    return once_per_host(folder.share(), stuck, kTimeout).has_value();
  });
  char byte = 0;
  cr_assert(read(ready[0], &byte, 1) == 1);
  const auto late = once_per_host(folder.share(), folder.make(), 20ms);
  cr_assert(!late && late.error().code == Code::timeout);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  folder.take();
  cr_assert(folder.made() == 1);
}

Test(once_per_host, who_cannot_find_out_leaves_it_to_the_next) {
  const Folder folder;
  const auto fails = []() -> Result<std::string> { return fail(Code::missing, "no such thing"); };
  const auto text = once_per_host(folder.share(), fails, kTimeout);
  cr_assert(!text && text.error().text == "no such thing");
  folder.take();
}

Test(once_per_host, what_is_old_or_cut_short_is_found_out_anew) {
  const Folder folder;
  folder.take();
  folder.take();
  cr_assert(folder.made() == 1);
  const int64_t long_ago = -1;  // seconds since boot
  overwrite(folder.files().at(0), 8, &long_ago, sizeof long_ago);
  folder.take();
  cr_assert(folder.made() == 2);
  fs::resize_file(folder.files().at(0), 1000);
  folder.take();
  cr_assert(folder.made() == 3);
  fs::resize_file(folder.files().at(0), 10);
  folder.take();
  cr_assert(folder.made() == 4);
}

Test(once_per_host, files_that_others_may_write_to_are_refused) {
  const Folder folder;
  folder.take();
  const fs::path file = folder.files().at(0);
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  cr_assert(!once_per_host(folder.share(), folder.make(), kTimeout));
  fs::rename(file, folder.root / "elsewhere");
  fs::permissions(folder.root / "elsewhere", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(folder.root / "elsewhere", file);
  cr_assert(!once_per_host(folder.share(), folder.make(), kTimeout));
  fs::remove(file);
  cr_assert(mkfifo(file.c_str(), 0600) == 0);
  cr_assert(!once_per_host(folder.share(), folder.make(), kTimeout));
  cr_assert(folder.made() == 1);
}

Test(once_per_host, what_was_left_behind_goes_with_a_later_share) {
  const Folder folder;
  HostShare left = folder.share();
  left.name = "a job of yesterday";
  cr_assert(once_per_host(left, folder.make(), kTimeout).has_value());
  const fs::path file = folder.files().at(0);
  folder.take();
  cr_assert(fs::exists(file));
  fs::last_write_time(file, fs::file_time_type::clock::now() - 2min);
  left.name = "a third";
  cr_assert(once_per_host(left, folder.make(), kTimeout).has_value());
  cr_assert(!fs::exists(file) && folder.files().size() == 2);
}
