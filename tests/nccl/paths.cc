// SPDX-License-Identifier: Apache-2.0
// paths LOG FILE [NAME]: whether NCCL, as its log tells (NCCL_DEBUG_SUBSYS=GRAPH), and we see the
// same paths on the machine of a topology file: class, bandwidth, hops, from each GPU and network
// device to each GPU, NVSwitch, CPU and network device. NAME is the known machine that FILE was
// written of, which tells what FILE cannot. Such lines are meant:
//   GPU/0-1a000 :GPU/0-1a000 (0/5000.0/LOC) NVS/0-0 (1/370.8/NVL) CPU/0-0 (3/48.0/PHB) …
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "known.h"
#include "topology/path.h"

namespace crosstie {
namespace {

constexpr DeviceKind kEnds[] = {DeviceKind::gpu, DeviceKind::nvswitch, DeviceKind::numa,
                                DeviceKind::port};

// A PCI address as one number, as NCCL writes it.
uint64_t packed(const Bdf& bdf) {
  std::string digits = to_text(bdf);
  std::erase_if(digits, [](char c) { return c == ':' || c == '.'; });
  return std::stoull(digits, nullptr, 16);
}

// What NCCL calls a device that paths end at; of NVSwitches it knows one. A port that tells no
// number has that of its place.
std::string name_in_nccl(const Device& d, size_t ports_before) {
  switch (d.kind) {
    case DeviceKind::gpu:
      return d.identity.bdf ? fmt::format("GPU/{:x}", packed(*d.identity.bdf)) : "";
    case DeviceKind::nvswitch:
      return "NVS/0";
    case DeviceKind::numa:
      return fmt::format("CPU/{:x}", d.identity.number.value_or(0));
    case DeviceKind::port:
      return fmt::format("NET/{:x}", d.index ? static_cast<size_t>(d.index->value) : ports_before);
    default:
      return "";
  }
}

// NCCL drops a NUMA node that nothing is beneath.
bool is_empty_node(const Machine& machine, uint32_t device) {
  return machine.devices()[device].kind == DeviceKind::numa &&
         std::ranges::none_of(machine.devices(), [&](const Device& d) { return d.parent == device; });
}

class Comparison {
 public:
  explicit Comparison(const Machine& machine) : paths_(machine, Paths::View::nccl) {
    for (uint32_t i = 0; i < machine.devices().size(); i++)
      if (std::ranges::count(kEnds, machine.devices()[i].kind) > 0 && !is_empty_node(machine, i))
        devices_.emplace(name_in_nccl(machine.devices()[i], count("NET")), i);
  }

  // A line of the log. The hyphen's left is the host, of which there is one.
  void line(const std::string& text) {
    std::smatch match;
    if (!std::regex_search(text, match, row_)) return;
    const std::string from = fmt::format("{}/{}", match.str(1), match.str(2));
    const std::string cells = match[3];
    for (std::sregex_iterator i(cells.begin(), cells.end(), cell_), end; i != end; ++i)
      compare(from, fmt::format("{}/{}", i->str(1), i->str(2)), *i);
  }

  // Whether all was the same, and all was there. From network devices none leads to an NVSwitch, as
  // GPUs do not hand on.
  bool verdict() const {
    const size_t pairs =
        count("GPU") * devices_.size() + count("NET") * (devices_.size() - count("NVS"));
    if (seen_.size() != pairs) fmt::print("NCCL tells {} of {} paths\n", seen_.size(), pairs);
    fmt::print("{} paths, {} differ\n", seen_.size(), different_);
    return seen_.size() == pairs && pairs > 0 && different_ == 0;
  }

 private:
  size_t count(std::string_view kind) const {
    return static_cast<size_t>(std::ranges::count_if(
        devices_, [&](const auto& device) { return device.first.starts_with(kind); }));
  }

  void compare(const std::string& from, const std::string& to, const std::smatch& cell) {
    const auto a = devices_.find(from), b = devices_.find(to);
    seen_.emplace(from, to);
    if (a == devices_.end() || b == devices_.end()) {
      different_++;
      fmt::print("{} to {}: not known here\n", from, to);
      return;
    }
    const Path own = paths_.between(a->second, b->second);
    const double rate = own.bandwidth.bytes_per_second / 1e9;
    if (name(own.type) == cell.str(5) && own.hops == std::stoul(cell.str(3)) &&
        std::abs(rate - std::stod(cell.str(4))) <= 0.05 + 1e-3 * rate)
      return;
    different_++;
    fmt::print("{} to {}: {} {:.1f} {}, NCCL {} {} {}\n", from, to, name(own.type), rate, own.hops,
               cell.str(5), cell.str(4), cell.str(3));
  }

  const std::regex row_{R"(NCCL INFO (\w+)/\w+-(\w+) :(.*))"};
  const std::regex cell_{R"((\w+)/\w+-(\w+) \((\d+)/([0-9.]+)/(\w+)\))"};
  Paths paths_;
  std::map<std::string, uint32_t> devices_;  // by NCCL's names
  std::set<std::pair<std::string, std::string>> seen_;
  size_t different_ = 0;
};

int compare(const char* log, const char* file, const char* known) {
  const auto machine = read_as_known(file, known);
  if (!machine) {
    fmt::print("{}\n", machine.error().text);
    return 3;
  }
  Comparison comparison(*machine);
  std::ifstream lines(log);
  for (std::string text; std::getline(lines, text);) comparison.line(text);
  return comparison.verdict() ? 0 : 1;
}

}  // namespace
}  // namespace crosstie

int main(int argc, char** argv) {
  if (argc == 3 || argc == 4) return crosstie::compare(argv[1], argv[2], argv[3]);
  fmt::print(stderr, "usage: paths LOG FILE [NAME]\n");
  return 2;
}
