// SPDX-License-Identifier: Apache-2.0
// Texts of NCCL's XML, and what is read of them.
#pragma once
#include <criterion/criterion.h>

#include "one_host.h"
#include "topology/path.h"

namespace crosstie::test {

inline std::string system_of(const std::string& inside) {
  return "<system version=\"1\">" + inside + "</system>";
}
inline std::string cpu(int numa, const std::string& inside, const std::string& attributes = "") {
  return fmt::format(
      "<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\" "
      "{}>{}</cpu>",
      numa, attributes, inside);
}
inline std::string pci(const std::string& busid, const char* kind, const std::string& inside,
                       const char* link = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"") {
  return fmt::format("<pci busid=\"{}\" class=\"{}\" {}>{}</pci>", busid, kind, link, inside);
}
inline std::string gpu(int n, const std::string& links = "", int sm = 90) {
  return pci(
      fmt::format("0000:{:02x}:00.0", 0x10 + n), "0x030200",
      fmt::format("<gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">{}</gpu>", n, sm, n, links));
}
inline std::string nvlink(int to, int count) {
  return fmt::format("<nvlink target=\"0000:{:02x}:00.0\" count=\"{}\" tclass=\"0x030200\"/>",
                     0x10 + to, count);
}
inline std::string to_switch(int count) {
  return fmt::format("<nvlink target=\"0000:fe:00.0\" count=\"{}\" tclass=\"0x068000\"/>", count);
}
inline std::string net(const std::string& name, const std::string& attributes) {
  return fmt::format("<nic><net name=\"{}\" dev=\"0\" port=\"1\" {}/></nic>", name, attributes);
}

inline Machine read(const std::string& text) {
  auto machine = read_host(text);
  cr_assert(machine.has_value(), "%s", machine ? "" : machine.error().text.c_str());
  return std::move(*machine);
}
inline Topology read_all(const std::string& text) {
  auto topology = read_nccl_xml(text, "test");
  cr_assert(topology.has_value(), "%s", topology ? "" : topology.error().text.c_str());
  return std::move(*topology);
}
inline std::string written(const Topology& topology) {
  const auto text = nccl_xml_text(topology);
  cr_assert(text.has_value(), "%s", text ? "" : text.error().text.c_str());
  return *text;
}

inline Path path(const Machine& m, Paths::View view, std::string_view from, std::string_view to) {
  const auto index = [&](std::string_view label) {
    const Device* const d = find(m, label);
    cr_assert(d != nullptr, "%s", std::string(label).c_str());
    return static_cast<uint32_t>(d - m.devices().data());
  };
  return Paths(m, view).between(index(from), index(to));
}
inline void expect(const Machine& m, Paths::View view, std::string_view from, std::string_view to,
                   PathClass type, double gigabytes) {
  const Path found = path(m, view, from, to);
  cr_assert(
      found.type == type && std::abs(found.bandwidth.bytes_per_second / 1e9 - gigabytes) < 1e-3,
      "%s %g", std::string(name(found.type)).c_str(), found.bandwidth.bytes_per_second / 1e9);
}

inline bool same(const Link& a, const Link& b) {
  return a.a == b.a && a.b == b.b && a.type == b.type && a.count == b.count &&
         a.bandwidth.has_value() == b.bandwidth.has_value() &&
         (!a.bandwidth ||
          std::abs(a.bandwidth->value.bytes_per_second - b.bandwidth->value.bytes_per_second) < 1);
}
inline bool same(const Identity& a, const Identity& b) {
  return a.bdf == b.bdf && a.guid == b.guid && a.number == b.number && a.name == b.name;
}

// What differs; empty: nothing.
inline std::string difference(const Machine& a, const Machine& b) {
  if (a.devices().size() != b.devices().size()) return "another number of devices";
  for (size_t i = 0; i < a.devices().size(); i++) {
    const Device &one = a.devices()[i], &other = b.devices()[i];
    bool equal = one.kind == other.kind && one.parent == other.parent && one.label == other.label &&
                 same(one.identity, other.identity) && one.attributes == other.attributes &&
                 one.elements == other.elements;
    for_each_field([&](const auto& field) { equal &= one.*field.member == other.*field.member; });
    if (!equal) return one.label + " is another";
  }
  const auto same_links = [](std::span<const Link> one, std::span<const Link> other) {
    return std::ranges::equal(one, other, [](const Link& x, const Link& y) { return same(x, y); });
  };
  if (!same_links(a.links(), b.links())) return "other links";
  return same_links(a.nccl_links(), b.nccl_links()) ? "" : "other links for NCCL";
}

}  // namespace crosstie::test
