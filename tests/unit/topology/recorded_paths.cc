// SPDX-License-Identifier: Apache-2.0
// Our paths on recorded machines beside those that NCCL 2.28.9 was seen to compute for them.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "machines.h"
#include "tap.h"
#include "topology/format/formats.h"
#include "topology/path.h"

namespace crosstie::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// Devices of a kind by what the recording calls them.
std::vector<uint32_t> find_all(const Machine& machine, DeviceKind kind, const Json& names) {
  std::vector<uint32_t> out;
  for (const Json& name : names) {
    uint32_t found = kNoDevice;
    for (uint32_t i = 0; i < machine.devices().size(); i++) {
      const Device& d = machine.devices()[i];
      if (d.kind != kind || found != kNoDevice) continue;
      const bool same = kind == DeviceKind::gpu ? d.identity.bdf && to_text(*d.identity.bdf) == name
                        : kind == DeviceKind::numa ? d.identity.number == name.get<uint32_t>()
                                                   : d.identity.name == name;
      if (same) found = i;
    }
    out.push_back(found);
  }
  return out;
}

// What differs in one of the recording's tables; empty: nothing.
std::string compare(const Machine& machine, const Paths& paths, const Json& table,
                    const std::vector<uint32_t>& rows, const std::vector<uint32_t>& columns) {
  std::string wrong;
  for (size_t r = 0; r < rows.size(); r++)
    for (size_t c = 0; c < columns.size(); c++) {
      const Json& cell = table[r][c];
      const Path own = paths.between(rows[r], columns[c]);
      const double rate = own.bandwidth.bytes_per_second / 1e9;
      if (name(own.type) == cell[0].get<std::string>() && own.hops == cell[2].get<uint32_t>() &&
          std::abs(rate - cell[1].get<double>()) <= 0.01 * rate)
        continue;
      if (wrong.size() < 800)
        wrong += fmt::format("{} to {}: {} {:.4g} {}, NCCL {}; ", machine.devices()[rows[r]].label,
                             machine.devices()[columns[c]].label, name(own.type), rate, own.hops,
                             cell.dump());
    }
  return wrong;
}

std::string compare(const Machine& machine, const Json& recorded) {
  const auto gpus = find_all(machine, DeviceKind::gpu, recorded["gpus"]);
  const auto ports = find_all(machine, DeviceKind::port, recorded["nets"]);
  const auto numas = find_all(machine, DeviceKind::numa, recorded["cpus"]);
  for (const auto* list : {&gpus, &ports, &numas})
    for (const uint32_t device : *list)
      if (device == kNoDevice) return "a device of the recording was not found";
  const Paths paths(machine, Paths::View::nccl);
  return compare(machine, paths, recorded["gpu_gpu"], gpus, gpus) +
         compare(machine, paths, recorded["gpu_net"], gpus, ports) +
         compare(machine, paths, recorded["net_gpu"], ports, gpus) +
         compare(machine, paths, recorded["gpu_cpu"], gpus, numas);
}

int main(const fs::path& data) {
  std::ifstream file(data / "nccl-paths.json");
  if (!file) {
    fmt::print("1..0 # SKIP no recorded machines in {}\n", data.string());
    return 0;
  }
  Tap tap;
  const Json recordings = Json::parse(file)["machines"];
  for (const auto& [name, recorded] : recordings.items()) {
    const auto read = read_topology_file(data / "topologies" / "nccl" / name);
    const std::string wrong = read ? compare(*read->hosts[0].machine, recorded) : read.error().text;
    tap.check(wrong.empty(), fmt::format("paths on {} are those of NCCL", name), wrong);
  }
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::test

int main() { return crosstie::test::main(crosstie::test::recorded() / "../.."); }
