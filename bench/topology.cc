// SPDX-License-Identifier: Apache-2.0
// What seeing a machine costs: live discovery, a large file, paths of a rack, a large cluster.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "driver/drivers.h"
#include "topology/domain.h"
#include "topology/format/formats.h"
#include "topology/path.h"
#include "topology/probe/live.h"

namespace crosstie {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double>& values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Each in a process of its own, so that the most memory it takes is its alone. `act` returns what
// it made, in words. Medians, of the time that passed and of the CPU's, which on a busy machine is
// the one that tells.
template <class Act>
void measure(const char* what, int runs, Act&& act) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child != 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  std::vector<double> passed, cpu;
  std::string made;
  for (int i = 0; i < runs; i++) {
    const auto start = Clock::now();
    const clock_t begun = std::clock();
    made = act();
    cpu.push_back(1e3 * static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
    passed.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:<34}{:>9.2f} ms{:>9.2f} ms CPU{:>5} MiB  {}\n", what, median(passed), median(cpu),
             usage.ru_maxrss / 1024, made);
  std::fflush(stdout);
  _exit(0);
}

std::string in_words(const Result<Topology>& topology) {
  if (!topology) return topology.error().text;
  size_t gpus = 0;
  for (const Host& host : topology->hosts) gpus += host.machine->count(DeviceKind::gpu);
  return fmt::format("{} hosts, {} GPUs, {} leaves", topology->hosts.size(), gpus,
                     topology->leaves.size());
}

std::string live() {
  Drivers drivers;
  drivers.verbs = open_verbs();
  drivers.nvml = open_nvml();
  const auto machine = probe_live({drivers, "here"});
  return machine ? fmt::format("{} devices", machine->devices().size()) : machine.error().text;
}

// 20,000 elements in 10 MB: bridges, each with a GPU and a NIC.
std::string large_xml() {
  std::string text = "<system version=\"1\">\n";
  int bus = 0;
  const auto pci = [&](const char* kind) {
    const std::string at = fmt::format("{:04x}:{:02x}:00.0", bus / 256, bus % 256);
    bus++;
    return fmt::format(
        "<pci busid=\"{}\" class=\"{}\" vendor=\"0x10de\" device=\"0x2330\" subsystem_vendor="
        "\"0x10de\" subsystem_device=\"0x16c1\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""
        ">{:900}",
        at, kind, "");
  };
  for (int numa = 0; numa < 64; numa++) {
    text += fmt::format(
        "<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
        "familyid=\"25\" modelid=\"17\">\n",
        numa);
    for (int i = 0; i < 45; i++) {
      text += pci("0x060400") + pci("0x030200");
      text += fmt::format(
          "<gpu dev=\"{}\" sm=\"90\"><nvlink target=\"ffff:01:00.0\" count=\"18\" "
          "tclass=\"0x068000\"/></gpu></pci>",
          numa * 45 + i);
      text += pci("0x020700");
      text += fmt::format("<nic><net name=\"mlx5_{}\" speed=\"400000\" port=\"1\"/></nic></pci>",
                          numa * 45 + i);
      text += "</pci>\n";
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

std::string all_paths(const Machine& rack) {
  const Paths paths(rack, Paths::View::nccl);
  const auto last = static_cast<uint32_t>(rack.devices().size() - 1);
  return fmt::format("{} devices; to the last {}", rack.devices().size(),
                     name(paths.between(0, last).type));
}

constexpr const char* kCluster =
    "[[hosts]]\nnames = \"node[0001-2048]\"\nmachine = \"dgx-h100\"\n"
    "[[leaves]]\nname = \"pod{group}-rail{rail}\"\nhosts = \"node[0001-2048]\"\n"
    "rails = [0, 1, 2, 3, 4, 5, 6, 7]\nhosts_per_leaf = 32\n";

}  // namespace
}  // namespace crosstie

int main() {
  using namespace crosstie;
  measure("live discovery", 15, live);
  const std::string xml = large_xml();
  measure(fmt::format("NCCL XML of {:.1f} MB", static_cast<double>(xml.size()) / 1e6).c_str(), 5,
          [&] {
            const auto read = read_nccl_xml(xml, "large");
            return read ? std::string("read") : read.error().text;
          });
  const Topology trays = *read_synthetic("18x gb200-nvl72");
  measure("fusing a rack of 18 trays", 15, [&] {
    return fmt::format("{} devices", fuse(trays, trays.hosts[0].domain)->devices().size());
  });
  const Machine rack = *fuse(trays, trays.hosts[0].domain);
  measure("paths between its 72 GPUs", 15, [&] { return all_paths(rack); });
  measure("\"2048x dgx-h100\"", 5, [] { return in_words(read_synthetic("2048x dgx-h100")); });
  measure("the same from a cluster file", 5,
          [] { return in_words(read_cluster_toml(kCluster, "")); });
}
