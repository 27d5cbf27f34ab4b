// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/hwloc_tree.h"

#include <algorithm>
#include <cstdio>
#include <pugixml.hpp>

#include "base/numbers.h"
#include "base/printable.h"
#include "topology/xml.h"

namespace crosstie::probe {
namespace {

using pugi::xml_node;

// Real trees end after some 20 levels; keeps recursion bounded whatever the file says.
constexpr int kDeepest = 128;
// Between as many ends matrices are told; an NVLink domain has 72 GPUs.
constexpr size_t kMostEnds = 1024;
// As of every machine. Each is compared with each package.
constexpr ptrdiff_t kMostNumaNodes = 256;

HwlocType type_of(const xml_node& object) {
  const std::string_view type = object.attribute("type").value();
  if (type == "Package" || type == "Socket") return HwlocType::package;
  if (type == "NUMANode") return HwlocType::numa;
  if (type == "PCIDev") return HwlocType::pci;
  if (type == "OSDev") return HwlocType::os;
  if (type != "Bridge") return HwlocType::other;
  const std::string_view sides = object.attribute("bridge_type").value();
  return sides.starts_with("0") ? HwlocType::host_bridge : HwlocType::bridge;
}

// Up to hwloc 2 one of 0 storage, 1 GPU, 2 network, 3 OpenFabrics, 4 DMA, 5 coprocessor; since
// hwloc 3 a set of 1 storage, 2 memory, 4 GPU, 8 coprocessor, 16 network, 32 OpenFabrics, 64 DMA.
void read_os_type(const xml_node& node, int version, HwlocObject& object) {
  const int type = node.attribute("osdev_type").as_int(-1);
  if (type < 0) return;
  if (version < 3) {
    object.gpu = type == 1 || type == 5;
    object.network = type == 2;
    object.rdma = type == 3;
  } else {
    object.gpu = (type & (4 | 8)) != 0;
    object.rdma = (type & 32) != 0;
    object.network = (type & 16) != 0 && !object.rdma;
  }
}

// Of "0000:[16-30]".
std::string first_bus(std::string_view buses) {
  const size_t open = buses.find("[");
  if (open == buses.npos || buses.size() < open + 3) return {};
  return fmt::format("{}{}", buses.substr(0, open), buses.substr(open + 1, 2));
}

class Parser {
 public:
  Result<HwlocTree> parse(const xml_node& root);

 private:
  Status read_version(const xml_node& root);
  Status read_object(const xml_node& node, uint32_t parent, int depth);
  void read_number(const xml_node& node, HwlocObject& object);
  Status read_pci(const xml_node& node, HwlocObject& object);
  Status read_matrix(const xml_node& node);

  HwlocTree tree_;
  std::map<std::string, uint32_t> by_id_;  // as matrices name objects: "OSDev:26"; not in hwloc 1
};

Status Parser::read_version(const xml_node& root) {
  const std::string_view text = root.attribute("version").value();
  // hwloc 1 wrote none.
  const auto major = text.empty() ? 1 : number_of<int>(text.substr(0, text.find('.')));
  if (!major || *major < 1 || *major > 3)
    return fail(Code::unsupported,
                "is an hwloc topology of version \"{}\"; those of hwloc 1 to 3 are read", text);
  tree_.version = *major;
  return {};
}

Status Parser::read_pci(const xml_node& node, HwlocObject& object) {
  const auto bdf = parse_bdf(node.attribute("pci_busid").value());
  if (!bdf) return pass(bdf, "pci_busid");
  object.bdf = *bdf;
  unsigned kind = 0, vendor = 0, device = 0, subvendor = 0, subdevice = 0;
  const char* const text = node.attribute("pci_type").value();
  if (std::sscanf(text, "%4x [%4x:%4x] [%4x:%4x]", &kind, &vendor, &device, &subvendor,
                  &subdevice) != 5)
    return fail(Code::invalid,
                "pci_type \"{}\" of {}, where \"0302 [10de:2330] [10de:16c1]\" would "
                "be one",
                text, to_text(*bdf));
  object.pci_class = static_cast<int>(kind);
  object.ids = {static_cast<uint16_t>(vendor), static_cast<uint16_t>(device),
                static_cast<uint16_t>(subvendor), static_cast<uint16_t>(subdevice)};
  const double speed = node.attribute("pci_link_speed").as_double();
  if (speed > 1e-3 && speed < 1e4) object.gigabytes = speed;
  return {};
}

// A package may have none.
void Parser::read_number(const xml_node& node, HwlocObject& object) {
  const auto index = node.attribute("os_index");
  object.number = number_of<uint32_t>(index.value());
  const bool is_node = object.type == HwlocType::numa;
  if (object.number || !(is_node || (object.type == HwlocType::package && index))) return;
  tree_.gaps.push_back({node.attribute("type").value(),
                        fmt::format("its os_index \"{}\" cannot be read", printable(index.value())),
                        is_node ? "no such node" : "it has none"});
}

Status Parser::read_object(const xml_node& node, uint32_t parent, int depth) {
  if (depth > kDeepest)
    return fail(Code::invalid, "objects nested deeper than {} levels", kDeepest);
  HwlocObject object{.type = type_of(node), .parent = parent};
  read_number(node, object);
  object.name = node.attribute("name").value();
  object.cpuset = node.attribute("cpuset").value();
  object.nodeset = node.attribute("nodeset").value();
  if (object.type == HwlocType::os) read_os_type(node, tree_.version, object);
  if (object.type == HwlocType::bridge || object.type == HwlocType::pci)
    if (const Status right = read_pci(node, object); !right) return right;
  if (object.type == HwlocType::host_bridge)
    object.root_bus = first_bus(node.attribute("bridge_pci").value());
  for (const xml_node& info : node.children("info"))
    object.infos.emplace(info.attribute("name").value(), info.attribute("value").value());
  const auto index = static_cast<uint32_t>(tree_.objects.size());
  if (const auto id = node.attribute("gp_index"))
    by_id_.emplace(fmt::format("{}:{}", node.attribute("type").value(), id.value()), index);
  tree_.objects.push_back(std::move(object));
  for (const xml_node& child : node.children("object"))
    if (const Status right = read_object(child, index, depth + 1); !right) return right;
  return {};
}

// Numbers and words in elements of a few each: "OSDev:26 OSDev:27", "26 27".
std::vector<std::string_view> words(const xml_node& node, const char* element) {
  std::vector<std::string_view> out;
  for (const xml_node& part : node.children(element)) {
    std::string_view text = part.child_value();
    while (true) {
      const size_t begin = text.find_first_not_of(" \t\r\n");
      if (begin == text.npos) break;
      text.remove_prefix(begin);
      const size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
      out.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  return out;
}

Status Parser::read_matrix(const xml_node& node) {
  HwlocMatrix matrix{.name = node.attribute("name").value(), .objects = {}, .values = {}};
  if (matrix.name != "NVLinkBandwidth" && matrix.name != "XGMIBandwidth") return {};
  const bool typed = std::string_view(node.name()) == "distances2hetero";
  for (const auto word : words(node, "indexes")) {
    const auto found = by_id_.find(
        typed ? std::string(word) : fmt::format("{}:{}", node.attribute("type").value(), word));
    matrix.objects.push_back(found == by_id_.end() ? kNoDevice : found->second);
  }
  for (const auto word : words(node, "u64values"))
    matrix.values.push_back(number_of<uint64_t>(word).value_or(0));
  const size_t ends = matrix.objects.size();
  if (ends > kMostEnds)
    return fail(Code::invalid, "{} joins {} objects; at most {} are read", matrix.name, ends,
                kMostEnds);
  if (matrix.values.size() != ends * ends)
    return fail(Code::invalid, "{} of {} objects has {} values, not the square of that",
                matrix.name, ends, matrix.values.size());
  tree_.matrices.push_back(std::move(matrix));
  return {};
}

Result<HwlocTree> Parser::parse(const xml_node& root) {
  if (const Status right = read_version(root); !right) return pass(right);
  const xml_node machine = root.child("object");
  if (!machine) return fail(Code::invalid, "is an hwloc topology without an object in it");
  if (machine.next_sibling("object"))
    return fail(Code::invalid, "is an hwloc topology of two roots; give each machine a file");
  if (const Status right = read_object(machine, kNoDevice, 0); !right) return pass(right);
  if (std::ranges::count(tree_.objects, HwlocType::numa, &HwlocObject::type) > kMostNumaNodes)
    return fail(Code::unsupported, "more than {} NUMA nodes", kMostNumaNodes);
  tree_.infos = tree_.objects[0].infos;
  for (const xml_node& info : root.children("info"))  // since hwloc 3
    tree_.infos.emplace(info.attribute("name").value(), info.attribute("value").value());
  for (const xml_node& node : root.children()) {
    const std::string_view name = node.name();
    if (name != "distances2" && name != "distances2hetero") continue;
    if (const Status right = read_matrix(node); !right) return pass(right);
  }
  return std::move(tree_);
}

}  // namespace

Result<HwlocTree> parse_hwloc_xml(std::string_view text) {
  pugi::xml_document document;
  if (const Status parsed = load_xml(text, document); !parsed) return pass(parsed);
  const xml_node root = document.document_element();
  if (std::string_view(root.name()) != "topology")
    return fail(Code::invalid, "root element <{}>, where hwloc's topologies have <topology>",
                root.name());
  return Parser().parse(root);
}

}  // namespace crosstie::probe
