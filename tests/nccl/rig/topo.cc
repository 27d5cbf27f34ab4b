// SPDX-License-Identifier: Apache-2.0
#include "topo.h"

#include <fmt/format.h>

#include <map>
#include <pugixml.hpp>

namespace {

// The first bus of a GPU's switch; the GPU and the NIC follow.
int switch_bus(int gpu) { return 0x10 + gpu * 8; }

// Opens a <pci> element; `board` is its vendor, device and subsystem attributes.
std::string open_pci(int bus, const char* device_class, const char* board) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"{}\" {} link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\">\n",
      bus, device_class, board);
}

std::string gpu_element(int gpu) {
  std::string xml = open_pci(switch_bus(gpu) + 1, "0x030200",
                             "vendor=\"0x10de\" device=\"0x2330\" subsystem_vendor=\"0x10de\" "
                             "subsystem_device=\"0x16c1\"");
  xml += fmt::format("<gpu dev=\"{}\" sm=\"90\">\n", gpu);
  constexpr int kLinks[4] = {5, 4, 4, 5};  // to each NVSwitch
  for (int s = 0; s < 4; s++)
    xml += fmt::format("<nvlink target=\"0000:{:x}:00.0\" count=\"{}\" tclass=\"0x068000\"/>\n",
                       0xf0 + s, kLinks[s]);
  return xml + "</gpu>\n</pci>\n";
}

std::string nic_element(int gpu) {
  return open_pci(switch_bus(gpu) + 2, "0x020700",
                  "vendor=\"0x15b3\" device=\"0x1021\" subsystem_vendor=\"0x15b3\" "
                  "subsystem_device=\"0x23\"") +
         "<nic>\n<net name=\"lo\" dev=\"0\" speed=\"400000\" port=\"1\" latency=\"0.000000\" "
         "guid=\"0x5160000\" maxconn=\"262144\" gdr=\"0\"/>\n</nic>\n</pci>\n";
}

std::string switch_element(int gpu) {
  std::string xml = open_pci(switch_bus(gpu), "0x060400",
                             "vendor=\"0x1000\" device=\"0xc030\" subsystem_vendor=\"0x1000\" "
                             "subsystem_device=\"0x1\"");
  xml += gpu_element(gpu);
  if (gpu == 0) xml += nic_element(gpu);
  return xml + "</pci>\n";
}

// An attribute of all elements that `path` finds, by the number ("dev") of that child or of
// themselves.
std::vector<std::string> by_number(const pugi::xml_document& document, const char* path,
                                   const char* numbered, const char* attribute) {
  std::multimap<int, std::string> found;
  for (const auto& match : document.select_nodes(path)) {
    const auto node = match.node();
    const auto owner = *numbered ? node.child(numbered) : node;
    found.emplace(owner.attribute("dev").as_int(), node.attribute(attribute).value());
  }
  std::vector<std::string> values;
  for (const auto& [_, value] : found) values.push_back(value);
  return values;
}

}  // namespace

std::string make_topology(int gpus) {
  std::string xml = "<system version=\"1\">\n";
  const int first_half = (gpus + 1) / 2;
  for (int socket = 0; socket < 2; socket++) {
    const int from = socket ? first_half : 0, to = socket ? gpus : first_half;
    if (from == to) continue;
    xml += fmt::format(
        "<cpu numaid=\"{}\" affinity=\"ffffffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
        "familyid=\"6\" modelid=\"143\">\n",
        socket);
    for (int gpu = from; gpu < to; gpu++) xml += switch_element(gpu);
    xml += "</cpu>\n";
  }
  return xml + "</system>\n";
}

Contents contents(const std::string& xml) {
  pugi::xml_document document;
  document.load_string(xml.c_str());
  return {by_number(document, "//pci[gpu]", "gpu", "busid"),
          by_number(document, "//net", "", "name")};
}
