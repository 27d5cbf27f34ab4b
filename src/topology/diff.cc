// SPDX-License-Identifier: Apache-2.0
#include "topology/diff.h"

#include <algorithm>
#include <map>
#include <set>

#include "topology/diff_pairing.h"
#include "topology/path.h"

namespace crosstie {
namespace {

// Fields that tell how fast a link is, or whether it is up.
constexpr std::array<std::string_view, 6> kLinkFields = {
    "pcie_gigatransfers_per_second",     "pcie_lanes",
    "pcie_gigatransfers_per_second_now", "pcie_lanes_now",
    "line_rate_bytes_per_second",        "carrier"};
// Fields that differ from host to host though nothing is wrong.
constexpr std::array<std::string_view, 7> kHostsOwn = {
    "index", "node_guid", "sys_image_guid", "lid", "gids", "fabric", "physical_function"};

std::string text_of(const std::string& value) { return value; }
std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(uint32_t value) { return fmt::format("0x{:06x}", value); }
std::string text_of(double value) { return fmt::format("{:g}", value); }
std::string text_of(uint64_t value) { return fmt::format("0x{:016x}", value); }
std::string text_of(Bandwidth value) { return to_text(value); }
std::string text_of(Seconds value) { return fmt::format("{:g}", value.count()); }
std::string text_of(const Bdf& value) { return to_text(value); }
std::string text_of(const CpuModel& value) {
  return fmt::format("{} {} family {} model {}", value.arch, value.vendor, value.family,
                     value.model);
}
std::string text_of(const PciIds& value) {
  return fmt::format("{:04x}:{:04x} {:04x}:{:04x}", value.vendor, value.device,
                     value.subsystem_vendor, value.subsystem_device);
}
std::string text_of(const FabricClique& value) {
  return fmt::format("{} clique {}", value.cluster, value.clique);
}
std::string text_of(const std::vector<Gid>& value) {
  std::vector<std::string> gids;
  for (const Gid& gid : value)
    gids.push_back(fmt::format("{} {} {}", gid.index, gid.address, gid.type));
  return fmt::format("{}", fmt::join(gids, ", "));
}

template <class T>
std::string told(const Known<T>& known) {
  return text_of(known.value) + (known.from == Provenance::assumed ? " (assumed)" : "");
}

template <class Range>
bool holds(const Range& range, std::string_view word) {
  return std::ranges::find(range, word) != std::end(range);
}

// What a device has beside its place: NVLinks and the like, by the other end.
using Bundles = std::map<std::tuple<uint32_t, uint32_t, LinkType>, const Link*>;

class Comparison {
 public:
  Comparison(const Machine& first, const Machine& second)
      : machines_{first, second}, pairing_(first, second) {}

  std::vector<Difference> run() {
    for (const size_t side : {0, 1}) list_missing(side);
    for (uint32_t i = 0; i < devices(0).size(); i++)
      if (const uint32_t j = pairing_.in_second(i); j != kNoDevice) compare_devices(i, j);
    compare_bundles();
    compare_refusals();
    compare_paths();
    std::ranges::stable_sort(
        found_, {}, [](const Found& f) { return std::pair(f.difference.kind, !f.of_gpu_link); });
    std::vector<Difference> out;
    for (Found& found : found_) out.push_back(std::move(found.difference));
    return out;
  }

 private:
  // What paths may have changed for: devices on the way of one of the two machines.
  struct Cause {
    size_t side;
    std::vector<uint32_t> devices;
  };
  struct Found {
    Difference difference;
    std::vector<Cause> causes{};
    bool of_gpu_link = false;  // as NVLink, which carries more than PCIe
  };

  std::span<const Device> devices(size_t side) const { return machines_[side].get().devices(); }
  uint32_t partner(size_t side, uint32_t i) const {
    return side == 0 ? pairing_.in_second(i) : pairing_.in_first(i);
  }

  void list_missing(size_t side) {
    for (uint32_t i = 0; i < devices(side).size(); i++)
      if (partner(side, i) == kNoDevice && !is_lost_with_its_owner(side, i)) list_one(side, i);
  }

  bool is_lost_with_its_owner(size_t side, uint32_t i) const {
    const Device& d = devices(side)[i];
    const bool owned =
        d.kind == DeviceKind::port || (d.kind == DeviceKind::gpu && d.parent != kNoDevice &&
                                       devices(side)[d.parent].kind == DeviceKind::gpu);
    return owned && partner(side, d.parent) == kNoDevice;
  }

  // A bridge matters for what is behind it only.
  void list_one(size_t side, uint32_t i) {
    const Device& d = devices(side)[i];
    const std::string address = d.identity.bdf ? " " + to_text(*d.identity.bdf) : "";
    const bool bridge = d.kind == DeviceKind::pci_switch;
    Difference difference{.kind = bridge ? DifferenceKind::path : DifferenceKind::device,
                          .device = d.label,
                          .what = fmt::format("{}{}{}", name(d.kind), address, holding(side, i))};
    (side == 0 ? difference.first : difference.second) = "there";
    found_.push_back({difference, {{side, {i}}}});
  }

  std::string holding(size_t side, uint32_t owner) const {
    std::vector<std::string_view> inside;
    for (const Device& d : devices(side)) {
      uint32_t up = d.parent;
      while (up != kNoDevice && up != owner) up = devices(side)[up].parent;
      if (up == owner && d.kind != DeviceKind::pci_switch) inside.push_back(d.label);
    }
    return inside.empty() ? "" : fmt::format(", with {}", fmt::join(inside, ", "));
  }

  void compare_devices(uint32_t i, uint32_t j) {
    const Device &a = devices(0)[i], &b = devices(1)[j];
    compare_places(i, j);
    if (pairing_.same_host()) compare_identities(a.identity, b.identity, a.label);
    for_each_field([&](const auto& field) {
      const auto &one = a.*field.member, &other = b.*field.member;
      if (!one || !other || one->value == other->value || !is_compared(field.name, a.kind)) return;
      const bool of_link = holds(kLinkFields, field.name);
      found_.push_back({{.kind = of_link ? DifferenceKind::link : DifferenceKind::property,
                         .device = a.label,
                         .what = std::string(field.name),
                         .first = told(*one),
                         .second = told(*other)},
                        {{0, {i}}}});
    });
  }

  bool is_compared(std::string_view field, DeviceKind kind) const {
    if (field == "pcie_gigatransfers_per_second_now" && kind == DeviceKind::gpu) return false;
    return pairing_.same_host() || !holds(kHostsOwn, field);
  }

  void compare_identities(const Identity& a, const Identity& b, const std::string& label) {
    const auto differ = [&](DifferenceKind kind, std::string what, const std::string& one,
                            const std::string& other) {
      if (one != other && !one.empty() && !other.empty())
        found_.push_back({{.kind = kind,
                           .device = label,
                           .what = std::move(what),
                           .first = one,
                           .second = other}});
    };
    const auto number = [](const Identity& id) {
      return id.number ? std::to_string(*id.number) : "";
    };
    differ(DifferenceKind::device, "uuid", a.uuid, b.uuid);
    differ(DifferenceKind::device, "guid", a.guid ? text_of(*a.guid) : "",
           b.guid ? text_of(*b.guid) : "");
    differ(DifferenceKind::property, "name", a.name, b.name);
    differ(DifferenceKind::property, "number", number(a), number(b));
  }

  // What is in between and on one side only was listed by itself.
  uint32_t place(size_t side, uint32_t i) const {
    do i = devices(side)[i].parent;
    while (i != kNoDevice && partner(side, i) == kNoDevice);
    return i;
  }

  void compare_places(uint32_t i, uint32_t j) {
    const uint32_t one = place(0, i), other = place(1, j);
    if ((one == kNoDevice ? kNoDevice : pairing_.in_second(one)) == other) return;
    const auto label = [&](size_t side, uint32_t d) {
      return d == kNoDevice ? std::string("the host") : "in " + devices(side)[d].label;
    };
    found_.push_back({{.kind = DifferenceKind::path,
                       .device = devices(0)[i].label,
                       .what = "its place",
                       .first = label(0, one),
                       .second = label(1, other)},
                      {{0, {i}}}});
  }

  // Links other than that to what contains a device, by their ends as the first machine has them.
  Bundles bundles(size_t side) const {
    Bundles out;
    for (const Link& link : machines_[side].get().links()) {
      if (devices(side)[link.b].parent == link.a && !is_gpu_link(link.type)) continue;
      const uint32_t a = side == 0 ? link.a : pairing_.in_first(link.a);
      const uint32_t b = side == 0 ? link.b : pairing_.in_first(link.b);
      const bool both =
          side == 0 ? pairing_.in_second(a) != kNoDevice && pairing_.in_second(b) != kNoDevice
                    : a != kNoDevice && b != kNoDevice;
      if (both) out.emplace(std::tuple(std::min(a, b), std::max(a, b), link.type), &link);
    }
    return out;
  }

  void compare_bundles() {
    const Bundles sides[2] = {bundles(0), bundles(1)};
    std::set<Bundles::key_type> all;
    for (const Bundles& side : sides)
      for (const auto& [ends, link] : side) all.insert(ends);
    for (const auto& ends : all) {
      const auto one = sides[0].find(ends), other = sides[1].find(ends);
      const std::string before = one == sides[0].end() ? "" : rate_text(*one->second);
      const std::string after = other == sides[1].end() ? "" : rate_text(*other->second);
      if (before == after) continue;
      const auto [a, b, type] = ends;
      found_.push_back({{.kind = DifferenceKind::link,
                         .device = devices(0)[a].label,
                         .what = fmt::format("{} to {}", name(type), devices(0)[b].label),
                         .first = before,
                         .second = after},
                        {{0, {a, b}}, {1, {pairing_.in_second(a), pairing_.in_second(b)}}},
                        is_gpu_link(type)});
    }
  }

  static std::string rate_text(const Link& link) {
    return fmt::format("{}x {}", link.count,
                       link.bandwidth ? to_text(link.bandwidth->value) : "of unknown speed");
  }

  void compare_refusals() {
    std::map<std::pair<uint32_t, uint32_t>, std::string> why[2];
    for (const size_t side : {0, 1})
      for (const Refusal& r : machines_[side].get().refusals()) {
        const uint32_t a = side == 0 ? r.a : pairing_.in_first(r.a);
        const uint32_t b = side == 0 ? r.b : pairing_.in_first(r.b);
        if (a != kNoDevice && b != kNoDevice) why[side].emplace(std::minmax(a, b), r.why);
      }
    for (const size_t side : {0, 1})
      for (const auto& [ends, text] : why[side]) {
        if (why[1 - side].contains(ends)) continue;
        Difference difference{
            .kind = DifferenceKind::link,
            .device = devices(0)[ends.first].label,
            .what = fmt::format("peer-to-peer with {} refused", devices(0)[ends.second].label)};
        (side == 0 ? difference.first : difference.second) = text.empty() ? "yes" : text;
        found_.push_back({difference});
      }
  }

  // A path that is of another class is told with what it is so for, which was found by now.
  void compare_paths() {
    const Paths first(machines_[0], Paths::View::nccl);
    const Paths second(machines_[1], Paths::View::nccl);
    for (uint32_t from = 0; from < devices(0).size(); from++) {
      if (devices(0)[from].kind != DeviceKind::gpu || pairing_.in_second(from) == kNoDevice)
        continue;
      for (uint32_t to = 0; to < devices(0).size(); to++) {
        const bool gpu = devices(0)[to].kind == DeviceKind::gpu && to > from;
        if ((gpu || devices(0)[to].kind == DeviceKind::port) && pairing_.in_second(to) != kNoDevice)
          compare_path(first, second, from, to);
      }
    }
  }

  void compare_path(const Paths& first, const Paths& second, uint32_t from, uint32_t to) {
    const uint32_t from2 = pairing_.in_second(from), to2 = pairing_.in_second(to);
    const PathClass before = first.between(from, to).type, after = second.between(from2, to2).type;
    if (before == after) return;
    const std::vector<uint32_t> routes[2] = {first.route(from, to), second.route(from2, to2)};
    const auto cause = std::ranges::find_if(found_, [&](const Found& found) {
      return std::ranges::any_of(found.causes, [&](const Cause& cause) {
        return std::ranges::all_of(cause.devices, [&](uint32_t d) {
          return std::ranges::find(routes[cause.side], d) != routes[cause.side].end();
        });
      });
    });
    const std::string ends = fmt::format("{} - {}", devices(0)[from].label, devices(0)[to].label);
    if (cause != found_.end())
      cause->difference.effects.push_back(
          fmt::format("{}: {} -> {}", ends, name(before), name(after)));
    else
      found_.push_back({{.kind = DifferenceKind::path,
                         .device = devices(0)[from].label,
                         .what = "path to " + devices(0)[to].label,
                         .first = std::string(name(before)),
                         .second = std::string(name(after))}});
  }

  std::reference_wrapper<const Machine> machines_[2];
  Pairing pairing_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<Difference> diff(const Machine& first, const Machine& second) {
  return Comparison(first, second).run();
}

}  // namespace crosstie
