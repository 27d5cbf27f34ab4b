// SPDX-License-Identifier: Apache-2.0
// What seeing a machine costs: live discovery, by one and by all ranks of a host, a large file,
// paths of a rack, a large cluster.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "../tools/this_host.h"
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

// Of this process and of those that it waited for.
double cpu_milliseconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      sum += 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  }
  return sum;
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
    const double begun = cpu_milliseconds();
    made = act();
    cpu.push_back(cpu_milliseconds() - begun);
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

// As many processes as a host has ranks; of one job they share a probe.
std::string ranks_look(const char* job) {
  constexpr int kRanks = 64;
  std::map<std::string, std::string> variables{
      {"RANK", "0"}, {"WORLD_SIZE", "64"}, {"LOCAL_WORLD_SIZE", "64"}};
  if (job)
    variables["TORCHELASTIC_RUN_ID"] =
        fmt::format("{}-{}", job, Clock::now().time_since_epoch().count());
  const Environment environment(variables);
  for (int rank = 0; rank < kRanks; rank++)
    if (fork() == 0) _exit(tools::this_host(environment, Log()) ? 0 : 1);
  int looked = 0, status = 0;
  while (wait(&status) > 0) looked += status == 0;
  return fmt::format("{} looked", looked);
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
  measure("64 ranks of a job", 5, [] { return ranks_look("bench"); });
  measure("64 processes each by itself", 5, [] { return ranks_look(nullptr); });
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
