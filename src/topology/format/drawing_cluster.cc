// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "topology/host_names.h"

namespace crosstie {
namespace {

using dot::bold;
using dot::small;

constexpr size_t kMostCables = 80;  // that an eye can follow
constexpr size_t kMostInARow = 4;   // hosts of eight rails; more stand on both sides of the leaves
constexpr std::string_view kHostFill = "#f4f6f8";
constexpr std::string_view kGpuFill = "#e3f1dc";
constexpr dot::Colour kNoRail = {"#cccccc", "black"};

std::string_view dashes_of(const std::optional<uint32_t>& rail) {
  return rail ? dot::rail_dashes(*rail) : "";
}

dot::Colour colour_of(const std::optional<uint32_t>& rail) {
  return rail ? dot::rail_colour(*rail) : kNoRail;
}

// Hosts drawn as one: of one kind, or a single one.
using Block = std::vector<const Host*>;

// The ports of a kind of host, those of one rail beside each other and in the order of rails.
struct Front {
  Front(const Machine& machine, const PortRails& rails_)
      : rails(rails_), ports(machine.of_kind(DeviceKind::port)) {
    order.resize(ports.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) {
      const auto& rail = rails[ports[i]];
      return std::pair(!rail, rail.value_or(0));
    });
  }

  const PortRails& rails;
  std::vector<uint32_t> ports;  // devices
  std::vector<size_t> order;    // of `ports` in the picture
};

class Cluster {
 public:
  Cluster(dot::Writer& out, const Topology& topology, const RailsOf& rails_of)
      : out_(out), topology_(topology) {
    for (const auto& [machine, rails] : rails_of) fronts_.try_emplace(machine, *machine, rails);
    for (const Host& host : topology.hosts)
      cables_ += static_cast<size_t>(
          std::ranges::count_if(host.leaves, [](uint32_t leaf) { return leaf != kNoLeaf; }));
    const bool few = cables_ <= kMostCables;
    group_hosts(few);
    group_leaves(few);
  }

  // Hosts below the leaves; where they are many, the first half above them.
  void draw() const {
    const size_t below = blocks_.size() > kMostInARow ? blocks_.size() / 2 : 0;
    draw_row("host", 0, below, [&](size_t i) { draw_block(i, false); });
    draw_row("leaves", 0, leaf_groups_.size(), [&](size_t i) { draw_leaves(i); });
    draw_row("host", below, blocks_.size(), [&](size_t i) { draw_block(i, true); });
    for (size_t i = 0; i < blocks_.size(); i++) draw_cables(i, i >= below);
  }

 private:
  void group_hosts(bool singly) {
    std::map<const Machine*, size_t> known;
    for (const Host& host : topology_.hosts) {
      const auto [at, is_new] = known.emplace(host.machine.get(), blocks_.size());
      if (singly || is_new) blocks_.emplace_back();
      (singly ? blocks_.back() : blocks_[at->second]).push_back(&host);
    }
  }

  void group_leaves(bool singly) {
    std::map<std::optional<uint32_t>, size_t> known;
    for (uint32_t i = 0; i < topology_.leaves.size(); i++) {
      const auto [at, is_new] = known.emplace(topology_.leaves[i].rail, leaf_groups_.size());
      if (singly || is_new) leaf_groups_.emplace_back();
      group_of_.push_back(singly ? i : at->second);
      leaf_groups_[group_of_[i]].push_back(i);
    }
  }

  // Invisible edges keep the order.
  template <class Draw>
  void draw_row(std::string_view name, size_t begin, size_t end, Draw&& draw) const {
    if (begin == end) return;
    out_.open("");
    out_.line("rank=same");
    std::vector<std::string> ids;
    for (size_t i = begin; i < end; i++) {
      draw(i);
      ids.push_back(fmt::format("{}{}", name, i));
    }
    if (ids.size() > 1) out_.line(fmt::format("{} [style=invis]", fmt::join(ids, " -- ")));
    out_.close();
  }

  void draw_leaves(size_t group) const {
    const std::vector<uint32_t>& leaves = leaf_groups_[group];
    const Leaf& first = topology_.leaves[leaves[0]];
    const auto [fill, ink] = colour_of(first.rail);
    std::string label =
        leaves.size() == 1
            ? bold(first.name)
            : bold(fmt::format("{} leaves", leaves.size())) + "<BR/>" +
                  small(fmt::format("{} to {}", first.name, topology_.leaves[leaves.back()].name));
    if (first.rail) label += "<BR/>" + small(fmt::format("rail {}", *first.rail));
    out_.box(fmt::format("leaves{}", group), label, fill, fmt::format(" fontcolor={}", ink));
  }

  void draw_block(size_t block, bool below) const {
    const Front& front = fronts_.at(blocks_[block][0]->machine.get());
    const auto rows = rows_of(blocks_[block], front);
    std::string text;
    for (const std::string& row : rows)
      if (!row.empty())
        text = below ? text + "<TR>" + row + "</TR>" : "<TR>" + row + "</TR>" + text;
    out_.table(fmt::format("host{}", block), text, kHostFill);
  }

  void draw_cables(size_t block, bool below) const {
    const Block& hosts = blocks_[block];
    const Front& front = fronts_.at(hosts[0]->machine.get());
    for (const auto& [cable, count] : cables_of(hosts, front)) {
      const auto [place, group] = cable;
      const uint32_t port = front.ports[front.order[place]];
      const auto& rail = front.rails[port];
      std::string look =
          fmt::format("color=\"{}\"{} penwidth=2", colour_of(rail).fill, dashes_of(rail));
      if (hosts.size() > 1) look += fmt::format(" label=\"{}x\"", count);
      const std::string leaf = fmt::format("leaves{}", group);
      const std::string end = fmt::format("host{}:p{}:{}", block, port, below ? 'n' : 's');
      out_.line(fmt::format("{} -- {} [{}]", below ? leaf : end, below ? end : leaf, look));
    }
  }

  // By place in the picture and group of leaves: how many.
  std::map<std::pair<size_t, size_t>, size_t> cables_of(const Block& hosts,
                                                        const Front& front) const {
    std::map<std::pair<size_t, size_t>, size_t> out;
    for (const Host* host : hosts)
      for (size_t place = 0; place < front.order.size(); place++) {
        const size_t port = front.order[place];
        if (port < host->leaves.size() && host->leaves[port] != kNoLeaf)
          out[{place, group_of_[host->leaves[port]]}]++;
      }
    return out;
  }

  // Ports towards the leaves, then the GPUs, in as many columns.
  static std::array<std::string, 3> rows_of(const Block& hosts, const Front& front) {
    const Machine& machine = *hosts[0]->machine;
    const auto gpus = machine.whole_gpus();
    const size_t columns =
        std::lcm(std::max<size_t>(front.ports.size(), 1), std::max<size_t>(gpus.size(), 1));
    std::array<std::string, 3> out;
    for (const size_t place : front.order)
      out[0] += port_cell(machine, front, front.ports[place], columns / front.ports.size());
    for (const uint32_t gpu : gpus)
      out[1] += fmt::format("<TD COLSPAN=\"{}\" BGCOLOR=\"{}\">{}</TD>", columns / gpus.size(),
                            kGpuFill, small(machine.devices()[gpu].label));
    out[2] = fmt::format("<TD COLSPAN=\"{}\">{}<BR/>{}</TD>", columns, bold(title_of(hosts)),
                         small(summary(machine, gpus)));
    return out;
  }

  static std::string port_cell(const Machine& machine, const Front& front, uint32_t port,
                               size_t columns) {
    const auto [fill, ink] = colour_of(front.rails[port]);
    return fmt::format(
        "<TD COLSPAN=\"{}\" PORT=\"p{}\" BGCOLOR=\"{}\"{}><FONT COLOR=\"{}\">{}</FONT></TD>",
        columns, port, fill, dashes_of(front.rails[port]), ink,
        small(machine.devices()[port].label));
  }

  static std::string summary(const Machine& machine, const std::vector<uint32_t>& gpus) {
    std::string out = machine.name();
    if (gpus.empty()) return out;
    out += fmt::format(": {}", gpus.size());
    const auto& model = machine.devices()[gpus[0]].model;
    out += model ? "x " + model->value : gpus.size() == 1 ? " GPU" : " GPUs";
    if (const uint32_t switches = machine.count(DeviceKind::nvswitch))
      out += fmt::format(", {} NVSwitch{}", switches, switches == 1 ? "" : "es");
    return out;
  }

  dot::Writer& out_;
  const Topology& topology_;
  size_t cables_ = 0;
  std::map<const Machine*, Front> fronts_;
  std::vector<Block> blocks_;
  std::vector<std::vector<uint32_t>> leaf_groups_;
  std::vector<size_t> group_of_;  // by leaf
};

// By their names, where these are short.
std::string title_of_several(const Block& hosts) {
  constexpr size_t kLongest = 40;
  std::vector<std::string_view> names;
  for (const Host* host : hosts) names.push_back(host->name);
  const std::string folded = fold_host_names(std::move(names));
  return fmt::format("{} hosts of this kind: {}", hosts.size(),
                     folded.size() <= kLongest ? folded : hosts[0]->machine->name());
}

}  // namespace

std::string title_of(const std::vector<const Host*>& hosts) {
  std::set<std::string_view> domains;
  for (const Host* host : hosts)
    if (!host->domain.empty()) domains.insert(host->domain);
  const std::string title = hosts.size() == 1 ? hosts[0]->name : title_of_several(hosts);
  if (domains.empty()) return title;
  return domains.size() == 1 ? fmt::format("{}, NVLink domain {}", title, *domains.begin())
                             : fmt::format("{}, {} NVLink domains", title, domains.size());
}

void draw_cluster(dot::Writer& out, const Topology& topology, const RailsOf& rails_of) {
  Cluster(out, topology, rails_of).draw();
}

}  // namespace crosstie
