// SPDX-License-Identifier: Apache-2.0
// tree TREE FILE: whether the PCIe tree that `crosstie topo --json` has written to FILE is the one
// that was asked of run-in-vm in its own words. Both are put in one form, in which the order of
// siblings and the names of switches do not count, what is where and which rail it is do.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

using Json = nlohmann::json;

// "switch(gpu rxe0)"; nothing where nothing is inside, as no source need see such a switch.
std::string enclose(const std::string& name, std::vector<std::string> inside) {
  std::erase(inside, "");
  std::ranges::sort(inside);
  return inside.empty() ? "" : fmt::format("{}({})", name, fmt::join(inside, " "));
}

struct Asked {
  std::map<std::string, Asked> inside;
  std::vector<std::string> devices;

  std::string text(const std::string& name) const {
    std::vector<std::string> parts = devices;
    for (const auto& [_, part] : inside) parts.push_back(part.text("switch"));
    return enclose(name, std::move(parts));
  }
};

// What a topology tells of a device of that kind; of most of QEMU's nothing.
std::string seen_as(const std::string& kind, int& rails) {
  if (kind.starts_with("rail")) return fmt::format("rxe{}", rails++);
  return kind == "nic" || kind == "gpu" ? kind : "";
}

std::string asked_text(const std::string& tree) {
  std::map<std::string, Asked> nodes;
  std::istringstream leaves(tree);
  int rails = 0;
  for (std::string leaf; leaves >> leaf;) {
    std::istringstream path(leaf);
    std::string node, name;
    std::getline(path, node, '/');
    Asked* place = &nodes[node];
    while (std::getline(path, name, '/'))
      if (path.eof())
        place->devices.push_back(seen_as(name, rails));
      else
        place = &place->inside[name];
  }
  std::vector<std::string> parts;
  for (const auto& [node, asked] : nodes) parts.push_back(asked.text("numa" + node));
  return enclose("host", parts);
}

class Found {
 public:
  explicit Found(const Json& devices) {
    for (const Json& device : devices) inside_[device["parent"].dump()].push_back(&device);
  }
  std::string text() const { return enclose("host", parts("null")); }

 private:
  std::vector<const Json*> inside(const std::string& parent) const {
    const auto found = inside_.find(parent);
    return found == inside_.end() ? std::vector<const Json*>() : found->second;
  }

  std::vector<std::string> parts(const std::string& parent) const {
    std::vector<std::string> texts;
    for (const Json* device : inside(parent))
      if ((*device)["type"] == "cpu")
        std::ranges::copy(parts((*device)["id"].dump()), std::back_inserter(texts));
      else
        texts.push_back(text(*device));
    return texts;
  }

  std::string text(const Json& device) const {
    const std::string id = device["id"].dump(), type = device["type"];
    if (type == "nic") return card(id);
    if (type == "numa")
      return enclose(fmt::format("numa{}", device["identity"]["number"].dump()), parts(id));
    return type == "pci-switch" ? enclose("switch", parts(id)) : type;
  }

  // By the RDMA device of its port.
  std::string card(const std::string& id) const {
    const auto ports = inside(id);
    if (ports.size() != 1) return fmt::format("nic-with-{}-ports", ports.size());
    const std::string name = ports[0]->at("identity").at("name");
    return name.starts_with("rxe") ? name : "nic";
  }

  std::map<std::string, std::vector<const Json*>> inside_;  // by their parent's number
};

int compare(const std::string& tree, const char* file) {
  std::ifstream stream(file);
  const std::string asked = asked_text(tree);
  const std::string found = Found(Json::parse(stream)["devices"]).text();
  fmt::print("asked: {}\nfound: {}\n", asked, found);
  return asked == found ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tree TREE FILE\n");
    return 2;
  }
  try {
    return compare(argv[1], argv[2]);
  } catch (const Json::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[2], error.what());
    return 2;
  }
}
