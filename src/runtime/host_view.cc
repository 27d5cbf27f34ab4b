// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_view.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cctype>
#include <set>
#include <system_error>

#include "base/handle.h"

namespace crosstie {
namespace {

bool is_gpu(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::isdigit(static_cast<unsigned char>(name[kPrefix.size()])) != 0;
}

// Device cgroups show all and let only some be opened.
std::set<std::string> usable_gpus(const std::filesystem::path& dev) {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(dev, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!is_gpu(name)) continue;
    const Fd fd(::open(entry->path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd) names.insert(name);
  }
  return names;
}

uint64_t mount_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/mnt", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::string host_view(const Environment& environment, const std::filesystem::path& dev) {
  std::string view = fmt::format("mounts {}", mount_namespace());
  for (const char* variable : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})
    if (const std::string* const value = environment.find(variable))
      view += fmt::format(" {}={}", variable, *value);
  for (const std::string& gpu : usable_gpus(dev)) view += " " + gpu;
  return view;
}

}  // namespace crosstie
