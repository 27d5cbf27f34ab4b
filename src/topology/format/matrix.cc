// SPDX-License-Identifier: Apache-2.0
// The picture of `nvidia-smi topo -m`, in its words, for any machine: what is between each two
// devices. Its "NIC" is a port here, as each port of a card is a function of its own there too.
#include <algorithm>
#include <charconv>
#include <set>

#include "base/printable.h"
#include "topology/format/formats.h"
#include "topology/path.h"
#include "topology/rails.h"

namespace crosstie {
namespace {

constexpr std::string_view kUnknown = "N/A";

struct Meaning {
  std::string_view word, text;
};
// The farthest first. A trailing # stands for the number of links.
constexpr std::array<Meaning, 10> kLegend = {{
    {"X", "the device itself"},
    {"DIS", "no connection"},
    {"SYS", "over PCIe and the interconnect between NUMA nodes"},
    {"NODE", "over PCIe and between PCIe host bridges of one NUMA node"},
    {"PHB", "over PCIe and a PCIe host bridge of the CPU"},
    {"C2C", "over C2C to the CPU, and over PCIe from there"},
    {"PXB", "over several PCIe bridges, without the CPU"},
    {"PIX", "over one PCIe bridge at most"},
    {"XGMI#", "over so many XGMI links"},
    {"NV#", "over so many NVLinks"},
}};

constexpr std::string_view kGuessed = " (or several: which ones is not known)";

std::string stem(std::string_view word) {
  const size_t digit = word.find_first_of("0123456789");
  return digit == word.npos || word == "C2C" ? std::string(word)
                                             : std::string(word.substr(0, digit)) + "#";
}

// "ffff0000,0000000f", as Linux writes sets of CPUs, to "0-3,48-63"; as it is where it is none.
std::string cpu_list(const std::string& mask) {
  std::vector<bool> bits;
  for (size_t i = mask.size(); i-- > 0;) {
    if (mask[i] == ',') continue;
    unsigned digit = 0;
    if (std::from_chars(&mask[i], &mask[i] + 1, digit, 16).ec != std::errc()) return mask;
    for (unsigned bit = 0; bit < 4; bit++) bits.push_back((digit >> bit & 1) != 0);
  }
  std::string list;
  for (size_t first = 0; first < bits.size(); first++) {
    if (!bits[first]) continue;
    size_t last = first;
    while (last + 1 < bits.size() && bits[last + 1]) last++;
    list += list.empty() ? "" : ",";
    list += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return list.empty() ? std::string(kUnknown) : list;
}

class Matrix {
 public:
  explicit Matrix(const Machine& machine)
      : machine_(machine), paths_(machine, Paths::View::physical) {
    const auto devices = machine.devices();
    gpus_ = machine.whole_gpus();
    sort_by_number(gpus_);
    ports_ = ports_and_bare_nics();
    links_of_.resize(devices.size());
    for (const Link& link : machine.links()) {
      links_of_[link.a].push_back(&link);
      links_of_[link.b].push_back(&link);
    }
  }

  std::string text() {
    const auto rows = table();
    std::vector<size_t> widths(rows[0].size());
    for (const auto& row : rows)
      for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    std::string out;
    for (const auto& row : rows) {
      std::string line;
      for (size_t i = 0; i < row.size(); i++) line += fmt::format("{:<{}}", row[i], widths[i] + 2);
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out + legend();
  }

 private:
  std::vector<std::vector<std::string>> table() {
    std::vector<uint32_t> all = gpus_;
    all.insert(all.end(), ports_.begin(), ports_.end());
    std::vector<std::vector<std::string>> rows(1, {""});
    for (size_t i = 0; i < all.size(); i++) rows[0].push_back(title(i));
    rows[0].insert(rows[0].end(), {"CPU Affinity", "NUMA Affinity"});
    for (size_t i = 0; i < all.size(); i++) {
      rows.push_back({title(i)});
      for (const uint32_t to : all) {
        rows.back().push_back(word_between(all[i], to));
        used_.insert(stem(rows.back().back()));
      }
      if (i < gpus_.size()) add_affinity(all[i], rows.back());
    }
    return rows;
  }

  // As the driver counts GPUs, where all tell their numbers.
  void sort_by_number(std::vector<uint32_t>& gpus) const {
    const auto devices = machine_.devices();
    const auto index = [&](uint32_t gpu) -> const Property<int>& { return devices[gpu].index; };
    if (std::ranges::all_of(gpus, [&](uint32_t gpu) { return index(gpu).has_value(); }))
      std::ranges::stable_sort(gpus, {}, [&](uint32_t gpu) { return index(gpu)->value; });
  }

  // In their order. Nothing tells of the ports of a NIC that has none.
  std::vector<uint32_t> ports_and_bare_nics() const {
    const auto devices = machine_.devices();
    std::vector<bool> has_ports(devices.size());
    for (const uint32_t port : machine_.of_kind(DeviceKind::port))
      has_ports[devices[port].parent] = true;
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < devices.size(); i++) {
      const Device& d = devices[i];
      if (d.kind == DeviceKind::port ||
          (d.kind == DeviceKind::nic && !has_ports[i] && !machine_.is_part(d)))
        out.push_back(i);
    }
    return out;
  }

  std::string title(size_t i) const {
    return i < gpus_.size() ? fmt::format("GPU{}", i) : fmt::format("NIC{}", i - gpus_.size());
  }

  std::string word_between(uint32_t from, uint32_t to) {
    if (from == to) return "X";
    for (const auto& [type, word] : {std::pair(LinkType::nvlink, "NV"), {LinkType::xgmi, "XGMI"}})
      if (const uint32_t count = links_between(from, to, type))
        return fmt::format("{}{}", word, count);
    switch (const PathClass type = paths_.between(from, to).type) {
      case PathClass::loc:  // two ports of one card
        return "PIX";
      case PathClass::p2c:
        return "C2C";
      case PathClass::phb:
        return within_node(from, to);
      case PathClass::nvl:  // by way of a GPU, of which this picture does not tell
      case PathClass::nvb:
        if (node_of(from) != node_of(to)) return "SYS";
        return within_node(from, to);
      default:
        return std::string(name(type));
    }
  }

  // Directly, or the fewer of the links that both have to switches.
  uint32_t links_between(uint32_t a, uint32_t b, LinkType type) const {
    uint32_t direct = 0, to_switches[2] = {};
    for (const uint32_t end : {a, b})
      for (const Link* link : links_of_[end]) {
        if (link->type != type) continue;
        const uint32_t other = link->a == end ? link->b : link->a;
        if (end == a && other == b) direct += link->count;
        if (machine_.devices()[other].kind == DeviceKind::nvswitch)
          to_switches[end == b] += link->count;
      }
    return direct > 0 ? direct : std::min(to_switches[0], to_switches[1]);
  }

  // A PCI domain has host bridges of its own. Within a domain only hwloc tells them.
  std::string within_node(uint32_t a, uint32_t b) {
    const Device &one = top_of(a), &other = top_of(b);
    if (one.host_bridge && other.host_bridge)
      return one.host_bridge->value == other.host_bridge->value ? "PHB" : "NODE";
    const auto &from = one.identity.bdf, &to = other.identity.bdf;
    if (from && to && from->domain != to->domain) return "NODE";
    guesses_bridges_ = true;
    return "PHB";
  }

  // The switch or function right beneath the CPU.
  const Device& top_of(uint32_t device) const {
    const auto devices = machine_.devices();
    while (devices[device].parent != kNoDevice &&
           devices[devices[device].parent].kind != DeviceKind::numa)
      device = devices[device].parent;
    return devices[device];
  }

  uint32_t node_of(uint32_t device) const {
    const auto devices = machine_.devices();
    while (device != kNoDevice && devices[device].kind != DeviceKind::numa)
      device = devices[device].parent;
    return device;
  }

  void add_affinity(uint32_t gpu, std::vector<std::string>& row) const {
    std::string cpus(kUnknown), number(kUnknown);
    if (const uint32_t node = node_of(gpu); node != kNoDevice && !is_guess(gpu)) {
      const Device& d = machine_.devices()[node];
      if (const auto told = d.attributes.find("cpu.affinity"); told != d.attributes.end())
        cpus = printable(cpu_list(told->second));
      if (d.identity.number) number = fmt::format("{}", *d.identity.number);
    }
    row.insert(row.end(), {cpus, number});
  }

  // Whether the place in the tree is the Builder's assumption, of the GPU or what it is in.
  bool is_guess(uint32_t device) const {
    const auto devices = machine_.devices();
    for (; device != kNoDevice; device = devices[device].parent)
      for (const Gap& gap : machine_.gaps())
        if (gap.about == GapAbout::numa_node && gap.device == devices[device].label) return true;
    return false;
  }

  std::string legend() const {
    std::string out = "\nLegend:\n";
    for (const auto& [word, text] : kLegend)
      if (used_.contains(word))
        out += fmt::format("  {:<6} = {}{}\n", word, text,
                           word == "PHB" && guesses_bridges_ ? kGuessed : "");
    if (!gpus_.empty()) out += "\nGPU Legend:\n";
    for (size_t i = 0; i < gpus_.size(); i++) out += entry(i, gpus_[i]);
    if (!ports_.empty()) out += "\nNIC Legend:\n";
    for (size_t i = 0; i < ports_.size(); i++) out += entry(gpus_.size() + i, ports_[i]);
    return out;
  }

  std::string entry(size_t place, uint32_t device) const {
    const Device& d = machine_.devices()[device];
    const auto& bdf =
        d.kind == DeviceKind::port ? machine_.devices()[d.parent].identity.bdf : d.identity.bdf;
    return fmt::format("  {}: {}{}\n", title(place), printable(d.label),
                       bdf ? " " + to_text(*bdf) : "");
  }

  const Machine& machine_;
  Paths paths_;
  std::vector<uint32_t> gpus_, ports_;
  std::vector<std::vector<const Link*>> links_of_;
  std::set<std::string, std::less<>> used_;
  bool guesses_bridges_ = false;  // whether a path may cross one host bridge or several
};

}  // namespace

std::string matrix_text(const Topology& topology) {
  std::string out;
  std::vector<const Machine*> shown;
  for (const Host& host : topology.hosts) {
    if (std::ranges::find(shown, host.machine.get()) != shown.end()) continue;
    shown.push_back(host.machine.get());
    const auto alike = std::ranges::count(topology.hosts, host.machine, &Host::machine);
    if (static_cast<size_t>(alike) < topology.hosts.size() || alike > 1)
      out += fmt::format(
          "{}{}:\n", out.empty() ? "" : "\n",
          printable(alike == 1 ? host.name : fmt::format("{}x {}", alike, host.machine->name())));
    out += Matrix(*host.machine).text();
  }
  return out;
}

}  // namespace crosstie
