// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_view.h"

#include <criterion/criterion.h>

#include <fstream>

using namespace crosstie;
namespace fs = std::filesystem;

Test(host_view, ranks_that_may_use_different_gpus_see_different_hosts) {
  std::string dev = (fs::temp_directory_path() / "crosstie-dev-XXXXXX").string();
  cr_assert(mkdtemp(dev.data()) != nullptr);
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "null"})
    std::ofstream(fs::path(dev) / name) << "x";
  const std::string all = host_view({}, dev);
  cr_assert(all == host_view({}, dev) && all.ends_with(" nvidia0 nvidia1"), "%s", all.c_str());
  const std::string one = host_view(
      Environment(std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "1"}}), dev);
  const std::string other = host_view(
      Environment(std::map<std::string, std::string>{{"NVIDIA_VISIBLE_DEVICES", "1"}}), dev);
  cr_assert(one != all && other != all && one != other);
  // What a device cgroup keeps is listed, and cannot be opened.
  fs::remove(fs::path(dev) / "nvidia0");
  fs::create_symlink("nothing", fs::path(dev) / "nvidia0");
  cr_assert(host_view({}, dev).ends_with(" nvidia1"));
  fs::remove_all(dev);
  cr_assert_not(host_view({}, dev).empty());
}
