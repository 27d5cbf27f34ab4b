// SPDX-License-Identifier: Apache-2.0
// A sysfs of a test's own.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace crosstie::fake {

class Sysfs {
 public:
  Sysfs() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "crosstie-sysfs-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    root = folder;
  }
  Sysfs(Sysfs&& other) noexcept : root(std::exchange(other.root, {})) {}
  ~Sysfs() {
    if (!root.empty()) std::filesystem::remove_all(root);
  }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file, std::ios::binary) << text;
  }
  // A PCI function in the folders of the bridges above it, from the root on, as the kernel has it.
  void pci(const std::string& bridges, const std::string& bdf) const {
    const auto folder = root / "devices" / bridges / bdf;
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(root / "bus" / "pci" / "devices");
    std::filesystem::create_directory_symlink(folder, root / "bus" / "pci" / "devices" / bdf);
  }

  std::filesystem::path root;
};

}  // namespace crosstie::fake
