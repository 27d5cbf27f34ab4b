// SPDX-License-Identifier: Apache-2.0
// Sightings: recognising devices and merging what is told of them.
#include "topology/builder.h"

#include <algorithm>

namespace crosstie {
namespace {

// Under which a device can be found again. A port is known within its NIC only: names of ports
// repeat in files that list them under every CPU. So is a numbered partition within its GPU, whose
// address it shares.
std::vector<std::string> keys_of(const Device& d) {
  const std::string_view kind = name(d.kind);
  const Identity& id = d.identity;
  if (d.kind == DeviceKind::port)
    return {fmt::format("port {} {} {}", d.parent, id.name, id.number.value_or(0))};
  std::vector<std::string> keys;
  if (!id.uuid.empty()) keys.push_back(fmt::format("uuid {}", id.uuid));
  if (d.kind == DeviceKind::gpu && id.number) {
    keys.push_back(fmt::format("part {} of {}", *id.number, d.parent));
    return keys;
  }
  if (id.bdf) keys.push_back(fmt::format("{} at {} of {}", kind, to_text(*id.bdf), d.host));
  if (id.number) keys.push_back(fmt::format("{} number {} of {}", kind, *id.number, d.host));
  if (!id.name.empty()) keys.push_back(fmt::format("{} named {} of {}", kind, id.name, d.host));
  return keys;
}

bool contradict(const Identity& a, const Identity& b) {
  return (!a.uuid.empty() && !b.uuid.empty() && a.uuid != b.uuid) ||
         (a.bdf && b.bdf && *a.bdf != *b.bdf);
}

void merge_identity(Identity& into, const Identity& seen) {
  if (!into.bdf) into.bdf = seen.bdf;
  if (into.uuid.empty()) into.uuid = seen.uuid;
  if (!into.guid) into.guid = seen.guid;
  if (!into.number) into.number = seen.number;
  if (into.name.empty()) into.name = seen.name;
}

// The better known one stays; of equals the first. False where equals disagree.
template <class T>
bool merge_property(Property<T>& into, const Property<T>& seen) {
  if (!seen) return true;
  if (!into || into->from < seen->from) {
    into = seen;
    return true;
  }
  return into->from > seen->from || into->value == seen->value;
}

}  // namespace

Builder::Builder(std::string name, std::string source) {
  parts_.name = std::move(name);
  parts_.source = std::move(source);
}

uint32_t Builder::see(Device seen) {
  const auto keys = keys_of(seen);
  uint32_t index = recognise(keys, seen);
  if (index != kNoDevice) {
    merge(index, seen);
  } else {
    index = static_cast<uint32_t>(devices_.size());
    devices_.push_back(std::move(seen));
  }
  for (const auto& key : keys) by_key_.emplace(key, index);
  return index;
}

uint32_t Builder::recognise(const std::vector<std::string>& keys, const Device& seen) const {
  for (const auto& key : keys) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end() && !contradict(devices_[found->second].identity, seen.identity))
      return found->second;
  }
  return kNoDevice;
}

void Builder::merge(uint32_t index, const Device& seen) {
  Device& d = devices_[index];
  merge_identity(d.identity, seen.identity);
  if (d.label.empty()) d.label = seen.label;
  bool agree = true;
  for_each_field(
      [&](const auto& field) { agree &= merge_property(d.*field.member, seen.*field.member); });
  d.attributes.insert(seen.attributes.begin(), seen.attributes.end());
  const std::vector<std::string> before = d.elements;
  for (const std::string& element : seen.elements)
    if (std::ranges::find(before, element) == before.end()) d.elements.push_back(element);
  if (!agree) gap(index, "is told twice, differently", "the first");
  if (seen.parent != kNoDevice) adopt(index, seen.parent);
}

void Builder::adopt(uint32_t index, uint32_t parent) {
  Device& d = devices_[index];
  if (d.parent == parent) return;
  if (d.parent != kNoDevice || is_within(parent, index))
    gap(index, "is listed in several places", "the first", GapAbout::placement);
  else
    d.parent = parent;
}

bool Builder::is_within(uint32_t device, uint32_t ancestor) const {
  for (; device != kNoDevice; device = devices_[device].parent)
    if (device == ancestor) return true;
  return false;
}

void Builder::link(uint32_t from, uint32_t to, const Bundle& bundle) {
  if (from == to)
    return gap(
        from,
        fmt::format("tells {} {} to its own end, so where they lead is not known; NCCL drops "
                    "them",
                    bundle.count, name(bundle.type)),
        "no such link", is_gpu_link(bundle.type) ? GapAbout::gpu_link : GapAbout::other);
  const auto [found, is_new] = links_.emplace(Ends{from, to, bundle.type}, bundle);
  if (is_new) return;
  Bundle& known = found->second;
  known.count += bundle.count;
  if (known.bandwidth && bundle.bandwidth)
    known.bandwidth->value.bytes_per_second += bundle.bandwidth->value.bytes_per_second;
}

void Builder::link_to_address(uint32_t from, const Bdf& to, DeviceKind kind, const Bundle& bundle) {
  open_links_.push_back({from, to, kind, bundle});
}

bool Builder::nccl_takes(const Link& link) {
  const Ends ends{std::min(link.a, link.b), std::max(link.a, link.b), link.type};
  if (!nccl_told_.insert(ends).second) return false;
  parts_.nccl_links.push_back(link);
  return true;
}

void Builder::refuse(uint32_t a, uint32_t b, std::string why) {
  parts_.refusals.push_back({a, b, std::move(why)});
}

uint32_t Builder::numa(uint32_t number) const {
  const auto keys = keys_of({.kind = DeviceKind::numa, .identity = {.number = number}});
  const auto found = by_key_.find(keys.front());
  return found == by_key_.end() ? kNoDevice : found->second;
}

void Builder::gap(uint32_t device, std::string missing, std::string assumed, GapAbout about) {
  gaps_.push_back({device, {{}, std::move(missing), std::move(assumed), about}});
}

void Builder::gap(std::string device, std::string missing, std::string assumed, GapAbout about) {
  gaps_.push_back({kNoDevice, {std::move(device), std::move(missing), std::move(assumed), about}});
}

}  // namespace crosstie
