// SPDX-License-Identifier: Apache-2.0
// Reads a host from NCCL's topology XML. What no property of a Device holds is kept in the file's
// words, for who writes the file again; comments are not.
#include "topology/format/nccl_xml_host.h"

#include <endian.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "topology/builder.h"
#include "topology/format/nccl_xml_schema.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

using pugi::xml_node;

const NcclXmlElement& element_of(const xml_node& node) { return nccl_xml_element(node.name()); }

// Deeper than any PCI hierarchy (a bus number has 8 bits, and real trees end after some 10
// levels); keeps recursion bounded whatever the file says.
constexpr int kDeepest = 64;

constexpr Provenance kFile = Provenance::file;

// Against slips, each far above what is built: GPUs of 2025 have 18 links, PCIe 7 runs at 128 GT/s,
// network ports reach 800 Gb/s.
constexpr Bounds kNuma{-1, 1 << 20};  // NCCL writes -1 where it does not know
constexpr Bounds kCpuModel{0, 1 << 20};
constexpr Bounds kPcieSpeed{.least = 0, .most = 1024, .is_real = true, .is_words = true};  // GT/s
constexpr Bounds kPcieWidth{0, 64};  // 0: not known
constexpr Bounds kCapability{0, 1000};
constexpr Bounds kLinks{.least = 0, .most = 1024, .must_tell = true};
constexpr Bounds kLinkSpeed{0, 1e8};   // MB/s
constexpr Bounds kPortSpeed{-1, 1e9};  // Mb/s; Linux writes -1 where there is no carrier
constexpr Bounds kPort{0, 65535};
constexpr Bounds kIndex{.least = 0, .most = 1 << 20, .must_tell = true};
constexpr Bounds kLatency{.least = 0, .most = 1e9, .is_real = true};  // microseconds

// Whether NCCL, or RCCL, which knows MI300, takes the class of such a text for a GPU's.
bool begins_as_gpu(std::string_view text) {
  return text.starts_with("0x03") || text.starts_with("0x12");
}

// The class code of a PCI function, 24 bits.
bool has_class(uint64_t code, uint64_t prefix, int bits) { return code >> (24 - bits) == prefix; }

// Reads the cpu elements of one host.
class Reader {
 public:
  Reader(const Lines& lines, std::string name, std::string source)
      : lines_(lines), numbers_(lines), builder_(std::move(name), std::move(source)) {}

  void read_system(const xml_node& system);
  Result<Machine> read(const std::vector<xml_node>& cpus);

 private:
  Status read_cpu(const xml_node& cpu);
  Status read_pci(const xml_node& pci, uint32_t parent, int depth);
  Status read_inside_pci(const xml_node& child, uint32_t device, uint32_t container, int depth);
  void read_gpu_links(const xml_node& gpu, uint32_t device);
  void read_gpu_link(const xml_node& link, uint32_t device);
  void read_bundle(const xml_node& link, uint32_t device, LinkType type);
  uint32_t far_switch(const xml_node& link, uint32_t gpu);
  void read_c2c(const xml_node& link, uint32_t device);
  void read_nic(const xml_node& nic, uint32_t device);
  void read_net(const xml_node& net, uint32_t device);
  void read_guid(const xml_node& net, uint32_t nic, Device& port);
  void read_pcilink(const xml_node& link, uint32_t device);

  void doubt_class(const xml_node& pci, uint32_t device);
  void own_up_to_skeleton(const xml_node& pci, uint32_t device);
  Status expect_own_address(const xml_node& pci);
  DeviceKind kind_of(const xml_node& pci);
  Device numa_node(const xml_node& cpu);
  CpuModel cpu_model(const xml_node& cpu);
  Device pci_function(const xml_node& pci, uint32_t parent);
  void describe_gpu(const xml_node& pci, Device& d);
  bool leads_nowhere(const xml_node& link, const Device& from);
  bool tells_own_class(const xml_node& link) const;
  std::string rest_of_link(const xml_node& link, bool is_first) const;
  void doubt_classes(const xml_node& gpu, uint32_t device);
  uint16_t id(const xml_node& node, const char* attribute, Device& d);
  void unknown(const xml_node& node);
  void check_attributes(const xml_node& node);
  void check_link(const xml_node& link);
  void keep_rest(const xml_node& node, Device& d);

  const Lines& lines_;
  NcclXmlNumbers numbers_;
  Builder builder_;
  Device of_system_;           // what is kept of the system element, with its first NUMA node
  uint32_t numa_ = kNoDevice;  // that of the cpu element being read
  std::map<Bdf, xml_node> described_;  // all PCI functions
  // GPUs and NICs that were read.
  std::map<std::pair<DeviceKind, Bdf>, xml_node> endpoints_;
};

std::optional<Bdf> address(const xml_node& node, const char* attribute) {
  const auto bdf = parse_bdf(node.attribute(attribute).value());
  return bdf ? std::optional(*bdf) : std::nullopt;
}

// In the file's own words.
void keep(Device& d, const xml_node& node, const char* attribute) {
  if (const auto told = node.attribute(attribute))
    d.attributes[fmt::format("{}.{}", node.name(), attribute)] = told.value();
}

template <class T>
Property<T> if_positive(T value) {
  return value > T{} ? known(value, kFile) : Property<T>{};
}

// None is 0, which many bridges tell.
uint16_t Reader::id(const xml_node& node, const char* attribute, Device& d) {
  const auto value = static_cast<uint16_t>(numbers_.code(node, attribute, 16));
  if (value == 0) keep(d, node, attribute);
  return value;
}

void Reader::read_system(const xml_node& system) {
  // RCCL's dialect has version 2.
  const std::string_view version = system.attribute("version").value();
  if (version != "1" && version != "2")
    builder_.gap("system", fmt::format("its version is '{}', not 1 or 2", version),
                 "that it means the same");
  keep_rest(system, of_system_);
  for (std::string& text : of_system_.elements) text = fmt::format("<system>{}</system>", text);
}

struct Addresses : pugi::xml_tree_walker {
  bool for_each(xml_node& node) override {
    if (std::string_view(node.name()) == "pci")
      if (const auto bdf = address(node, "busid")) found.emplace(*bdf, node);
    return true;
  }
  std::map<Bdf, xml_node> found;
};

Result<Machine> Reader::read(const std::vector<xml_node>& cpus) {
  for (xml_node cpu : cpus) {
    Addresses addresses;
    cpu.traverse(addresses);
    described_.merge(addresses.found);
  }
  for (const xml_node& cpu : cpus)
    if (const Status read = read_cpu(cpu); !read) return pass(read);
  if (!numbers_.status()) return pass(numbers_.status());
  return std::move(builder_).build();
}

// NCCL writes AMD's extended family, from CPUID's bits 20 to 27, before the base family rather than
// adding it: 0x8f for family 0x17.
int cpuid_family(const std::string& vendor, int written) {
  const bool extended = vendor == "AuthenticAMD" && written > 0xf && (written & 0xf) == 0xf;
  return extended ? 0xf + (written >> 4) : written;
}

CpuModel Reader::cpu_model(const xml_node& cpu) {
  CpuModel model{cpu.attribute("arch").value(), cpu.attribute("vendor").value(), 0,
                 numbers_.whole(cpu, "modelid", kCpuModel)};
  model.family = cpuid_family(model.vendor, numbers_.whole(cpu, "familyid", kCpuModel));
  return model;
}

Device Reader::numa_node(const xml_node& cpu) {
  Device numa{.kind = DeviceKind::numa};
  if (builder_.size() == 0) {
    numa.attributes = of_system_.attributes;
    numa.elements = of_system_.elements;
  }
  if (const int number = numbers_.whole(cpu, "numaid", kNuma, -1); number >= 0)
    numa.identity.number = static_cast<uint32_t>(number);
  if (cpu.attribute("arch") || cpu.attribute("vendor")) numa.cpu = known(cpu_model(cpu), kFile);
  if (numa.cpu && numa.cpu->value.family != numbers_.whole(cpu, "familyid", kCpuModel))
    keep(numa, cpu, "familyid");
  keep_rest(cpu, numa);
  if (cpu.attribute("affinity").empty() || !*cpu.attribute("affinity").value())
    numa.attributes.erase("cpu.affinity");
  return numa;
}

Status Reader::read_cpu(const xml_node& cpu) {
  numa_ = builder_.see(numa_node(cpu));
  if (!builder_.device(numa_).identity.number)
    builder_.gap(numa_, "the number of this NUMA node is not known", {}, GapAbout::numa_node);
  for (const xml_node& child : cpu.children()) {
    const std::string_view name = child.name();
    if (name == "pci") {
      if (const Status read = read_pci(child, numa_, 0); !read) return read;
    } else if (name == "nic") {
      read_nic(child, numa_);
    }
  }
  return {};
}

// NCCL's prefixes; 0x12 (processing accelerator) is how AMD's MI300 presents itself.
DeviceKind Reader::kind_of(const xml_node& pci) {
  const uint64_t kind = numbers_.class_code(pci, "class");
  if (pci.child("gpu") || has_class(kind, 0x03, 8) || has_class(kind, 0x12, 8))
    return DeviceKind::gpu;
  if (has_class(kind, 0x02, 8)) return DeviceKind::nic;
  if (has_class(kind, 0x0680, 16)) return DeviceKind::nvswitch;
  return pci.child("nic") && !has_class(kind, 0x06, 8) ? DeviceKind::nic : DeviceKind::pci_switch;
}

Device Reader::pci_function(const xml_node& pci, uint32_t parent) {
  Device d{.kind = kind_of(pci), .parent = parent};
  d.identity.bdf = address(pci, "busid");
  if (!d.identity.bdf) keep(d, pci, "busid");
  if (!tells_nothing(pci.attribute("class").value()))
    d.pci_class = known(static_cast<uint32_t>(numbers_.class_code(pci, "class")), kFile);
  if (!d.pci_class || pci.attribute("class").value() != class_text(d.pci_class->value))
    keep(d, pci, "class");
  if (pci.attribute("vendor"))
    d.pci_ids = known(PciIds{id(pci, "vendor", d), id(pci, "device", d),
                             id(pci, "subsystem_vendor", d), id(pci, "subsystem_device", d)},
                      kFile);
  d.pcie_speed = if_positive(numbers_.number(pci, "link_speed", kPcieSpeed).value_or(0));
  if (!d.pcie_speed || !nccl_knows_pcie_speed(pci.attribute("link_speed").value()))
    keep(d, pci, "link_speed");
  d.pcie_lanes = if_positive(numbers_.whole(pci, "link_width", kPcieWidth));
  if (!d.pcie_lanes) keep(d, pci, "link_width");
  keep_rest(pci, d);
  describe_gpu(pci, d);
  if (d.kind == DeviceKind::nic)
    for (const xml_node& nic : pci.children("nic")) keep_rest(nic, d);
  return d;
}

// Other than that of what it leads to, in NCCL's spelling.
bool Reader::tells_own_class(const xml_node& link) const {
  const auto told = link.attribute("tclass");
  const auto target = address(link, "target");
  const auto end = target ? described_.find(*target) : described_.end();
  const auto code =
      parse_class(end == described_.end() ? told.value() : end->second.attribute("class").value());
  return told && (!code || told.value() != class_text(*code));
}

// What no Link holds of it, with where it leads; empty: nothing. Links to one end are one, whose
// class the first tells.
std::string Reader::rest_of_link(const xml_node& link, bool is_first) const {
  const std::string_view name = link.name();
  if (name != "nvlink" && name != "xgmi" && name != "c2c") return {};
  pugi::xml_document alone;
  xml_node rest = alone.append_child(link.name());
  for (const auto& attribute : link.attributes())
    if (!lists(element_of(link).read, attribute.name())) rest.append_copy(attribute);
  if (is_first && tells_own_class(link)) rest.append_copy(link.attribute("tclass"));
  for (const xml_node& child : link.children())
    if (child.type() == pugi::node_element) rest.append_copy(child);
  if (!rest.first_attribute() && !rest.first_child()) return {};
  if (const auto target = link.attribute("target")) rest.prepend_copy(target);
  return xml_text(rest);
}

void Reader::describe_gpu(const xml_node& pci, Device& d) {
  const xml_node gpu = pci.child("gpu");
  if (!gpu) return;
  if (gpu.attribute("dev")) {
    d.index = known(numbers_.whole(gpu, "dev", kIndex), kFile);
    d.label = fmt::format("gpu{}", d.index->value);
  }
  // RCCL tells there how many compute units the GPU has.
  const bool amd = gpu.attribute("gcn");
  const int sm = numbers_.whole(gpu, "sm", kCapability);
  d.compute_capability = if_positive(amd ? capability_of_gcn(gpu.attribute("gcn").value()) : sm);
  if (!d.compute_capability || amd) keep(d, gpu, "sm");
  d.gpu_direct = numbers_.flag(gpu, "gdr");
  if (!d.gpu_direct) keep(d, gpu, "gdr");
  keep_rest(gpu, d);
  std::set<std::pair<std::string, std::optional<Bdf>>> ends;
  for (const xml_node& link : gpu.children()) {
    const bool is_first = ends.emplace(link.name(), address(link, "target")).second;
    const std::string kept = leads_nowhere(link, d) ? xml_text(link) : rest_of_link(link, is_first);
    if (!kept.empty()) d.elements.push_back(kept);
  }
  for (xml_node other = gpu.next_sibling("gpu"); other; other = other.next_sibling("gpu"))
    d.elements.push_back(xml_text(other));
}

// NCCL goes by the class of each.
void Reader::doubt_classes(const xml_node& gpu, uint32_t device) {
  std::map<std::pair<std::string_view, Bdf>, std::string_view> classes;
  for (const xml_node& link : gpu.children()) {
    const auto target = address(link, "target");
    if (!target) continue;
    const std::string_view told = link.attribute("tclass").value();
    const auto [first, is_new] = classes.emplace(std::pair(link.name(), *target), told);
    if (!is_new && first->second != told)
      builder_.gap(device,
                   fmt::format("tells {} to {} of class \"{}\" and of class \"{}\"", link.name(),
                               to_text(*target), first->second, told),
                   "the first, of all of them", GapAbout::gpu_link);
  }
}

// A link that the Machine cannot hold, as those to a GPU that was trimmed from the file.
bool Reader::leads_nowhere(const xml_node& link, const Device& from) {
  const std::string_view name = link.name();
  if (name != "nvlink" && name != "xgmi") return false;
  if (numbers_.whole(link, "count", kLinks, 1) == 0) return true;
  const uint64_t kind = numbers_.class_code(link, "tclass");
  if (has_class(kind, 0x068001, 24)) return false;
  const auto target = address(link, "target");
  const bool to_switch = has_class(kind, 0x0680, 16);
  if (!target) return !to_switch;
  return target == from.identity.bdf || (!to_switch && !described_.contains(*target));
}

std::vector<std::string_view> ports_of(const xml_node& pci) {
  std::vector<std::string_view> names;
  for (const xml_node& nic : pci.children("nic"))
    for (const xml_node& net : nic.children("net")) names.push_back(net.attribute("name").value());
  return names;
}

// A NIC may be listed under every CPU; else two of one address are no copies, and whatever refers
// to the address means either.
Status Reader::expect_own_address(const xml_node& pci) {
  const auto bdf = address(pci, "busid");
  const DeviceKind kind = kind_of(pci);
  if (!bdf || (kind != DeviceKind::gpu && kind != DeviceKind::nic)) return {};
  const auto [first, is_new] = endpoints_.emplace(std::pair(kind, *bdf), pci);
  if (is_new || (kind == DeviceKind::nic && ports_of(first->second) == ports_of(pci))) return {};
  return fail(Code::invalid, "line {}: the {} has the busid {} of that in line {}", lines_.of(pci),
              kind == DeviceKind::gpu ? "GPU" : "NIC", to_text(*bdf), lines_.of(first->second));
}

// Files written by hand, as those of cloud providers, may tell no more of a device than where it
// is; NCCL looks at it when it runs.
void Reader::own_up_to_skeleton(const xml_node& pci, uint32_t device) {
  const DeviceKind kind = kind_of(pci);
  if (kind == DeviceKind::gpu && !pci.child("gpu"))
    builder_.gap(device,
                 "nothing is told of its NVLinks or xGMI; NCCL asks the driver when it runs");
  if (kind == DeviceKind::nic && ports_of(pci).empty())
    builder_.gap(device, "nothing is told of its ports; NCCL asks the driver when it runs");
}

void Reader::doubt_class(const xml_node& pci, uint32_t device) {
  const uint64_t kind = numbers_.class_code(pci, "class");
  const bool is_switch = kind_of(pci) == DeviceKind::pci_switch;
  if (is_switch && !has_class(kind, 0x0604, 16) && !has_class(kind, 0x0801, 16))
    builder_.gap(device, "its class tells neither GPU, NIC nor bridge", "a PCIe switch");
  const auto told = pci.attribute("class");
  if (kind_of(pci) == DeviceKind::gpu && !pci.child("gpu") && !begins_as_gpu(told.value()))
    builder_.gap(device,
                 fmt::format("its class is \"{}\", and NCCL, which takes none for a GPU's but "
                             "0x03... where there is no <gpu>, does not see this GPU",
                             told.value()),
                 "a GPU");
}

Status Reader::read_pci(const xml_node& pci, uint32_t parent, int depth) {
  if (depth == kDeepest)
    return fail(Code::invalid, "line {}: pci elements nested more than {} deep", lines_.of(pci),
                kDeepest);
  if (const Status right = expect_own_address(pci); !right) return right;
  const uint32_t device = builder_.see(pci_function(pci, parent));
  if (!address(pci, "busid"))
    builder_.gap(device, fmt::format("its busid in line {} is no PCI address", lines_.of(pci)));
  doubt_class(pci, device);
  own_up_to_skeleton(pci, device);
  const uint32_t container = kind_of(pci) == DeviceKind::nvswitch ? parent : device;
  for (const xml_node& child : pci.children())
    if (const Status read = read_inside_pci(child, device, container, depth); !read) return read;
  return {};
}

Status Reader::read_inside_pci(const xml_node& child, uint32_t device, uint32_t container,
                               int depth) {
  const std::string_view name = child.name();
  if (name == "pci") return read_pci(child, container, depth + 1);
  if (name == "gpu" && child.previous_sibling("gpu"))
    builder_.gap(device, "another gpu element of the same PCI function", "not a device");
  else if (name == "gpu")
    read_gpu_links(child, device);
  else if (name == "nic")
    read_nic(child, container);
  else if (name == "pcilink")
    read_pcilink(child, device);
  return {};
}

void Reader::read_gpu_links(const xml_node& gpu, uint32_t device) {
  doubt_classes(gpu, device);
  for (const xml_node& link : gpu.children()) read_gpu_link(link, device);
}

void Reader::read_gpu_link(const xml_node& link, uint32_t device) {
  const std::string_view name = link.name();
  if (name == "nvlink")
    read_bundle(link, device, LinkType::nvlink);
  else if (name == "xgmi")
    read_bundle(link, device, LinkType::xgmi);
  else if (name == "c2c")
    read_c2c(link, device);
}

void Reader::read_bundle(const xml_node& link, uint32_t device, LinkType type) {
  check_link(link);
  const uint64_t kind = numbers_.class_code(link, "tclass");
  const auto count = static_cast<uint32_t>(numbers_.whole(link, "count", kLinks, 1));
  const auto target = address(link, "target");
  if (count == 0)
    return builder_.gap(device, "a link with count 0", "no such link", GapAbout::gpu_link);
  if (has_class(kind, 0x068001, 24)) return builder_.link(device, numa_, {type, count});
  const bool to_switch = has_class(kind, 0x0680, 16);
  if (!target && to_switch) return builder_.link(device, far_switch(link, device), {type, count});
  if (!target)
    return builder_.gap(device, "a link whose target is no PCI address", "no such link",
                        GapAbout::gpu_link);
  const auto told = link.attribute("tclass");
  if (type == LinkType::nvlink && !to_switch && told && !begins_as_gpu(told.value()))
    builder_.gap(device,
                 fmt::format("tells nvlink to {} of class \"{}\", and NCCL, which takes none for a "
                             "GPU's but 0x03..., takes that for an NVSwitch",
                             to_text(*target), told.value()),
                 "a GPU, if it is one", GapAbout::gpu_link);
  builder_.link_to_address(device, *target, to_switch ? DeviceKind::nvswitch : DeviceKind::gpu,
                           {type, count});
}

// GPUs of an NVL72 do not tell where their NVSwitches are, which stand outside the host; NCCL then
// writes fffffff:ffff:ff.
uint32_t Reader::far_switch(const xml_node& link, uint32_t gpu) {
  Device far{.kind = DeviceKind::nvswitch, .host = builder_.device(gpu).host};
  far.identity.name = link.attribute("target").value();
  return builder_.see(far);
}

void Reader::read_c2c(const xml_node& link, uint32_t device) {
  check_link(link);
  const auto count = static_cast<uint32_t>(std::max(numbers_.whole(link, "count", kLinks, 1), 1));
  const double each = numbers_.number(link, "bw", kLinkSpeed).value_or(0);
  const auto rate = if_positive(gigabytes(each * count / 1000));
  builder_.link(device, numa_, {LinkType::c2c, count, rate});
}

// Beneath a NUMA node or switch: network devices that are no PCI function (bridges, tunnels,
// NCCL's merged NICs). Such are known by name, as NCCL lists them under every cpu.
void Reader::read_nic(const xml_node& nic, uint32_t device) {
  for (const xml_node& net : nic.children("net")) {
    if (builder_.device(device).kind == DeviceKind::nic) {
      read_net(net, device);
    } else {
      Device bare{.kind = DeviceKind::nic, .parent = device};
      bare.identity.name = net.attribute("name").as_string("unnamed");
      keep_rest(nic, bare);
      const uint32_t owner = builder_.see(bare);
      builder_.gap(owner, "it has no PCI function", "it sits by the CPU");
      read_net(net, owner);
    }
  }
}

void Reader::read_net(const xml_node& net, uint32_t device) {
  Device port{.kind = DeviceKind::port, .parent = device};
  port.identity.name = net.attribute("name").value();
  port.identity.number = static_cast<uint32_t>(numbers_.whole(net, "port", kPort));
  read_guid(net, device, port);
  port.line_rate =
      if_positive(gigabits(numbers_.number(net, "speed", kPortSpeed).value_or(0) / 1000));
  if (!port.line_rate) keep(port, net, "speed");
  if (const auto latency = numbers_.number(net, "latency", kLatency))
    port.latency = known(microseconds(*latency), kFile);
  if (net.attribute("dev")) port.index = known(numbers_.whole(net, "dev", kIndex), kFile);
  if (net.attribute("rail")) port.rail = known(numbers_.whole(net, "rail", kIndex), kFile);
  port.gpu_direct = numbers_.flag(net, "gdr");
  if (!port.gpu_direct) keep(port, net, "gdr");
  keep_rest(net, port);
  builder_.see(port);
}

// The whole card's, in the order of bytes that is the wire's. Of what is no card (sockets,
// libfabric's devices) it is a number that the plugin gives. Files give a card one for all its
// ports; what tells another is kept.
void Reader::read_guid(const xml_node& net, uint32_t nic, Device& port) {
  const uint64_t guid = numbers_.code(net, "guid", 64);
  if (guid == 0) return keep(port, net, "guid");
  if (guid < kLeastGuid) return void(port.identity.guid = guid);
  const uint64_t card = be64toh(guid);
  const auto& known_one = builder_.device(nic).sys_image_guid;
  if (known_one && known_one->value != card) return keep(port, net, "guid");
  builder_.merge(nic, {.kind = DeviceKind::nic, .sys_image_guid = known(card, kFile)});
}

// Two virtual switches of one Broadcom chip.
void Reader::read_pcilink(const xml_node& link, uint32_t device) {
  check_link(link);
  if (const auto target = address(link, "target"))
    builder_.link_to_address(device, *target, DeviceKind::pci_switch,
                             {LinkType::local, 1, known(kLocal, Provenance::assumed)});
}

void Reader::unknown(const xml_node& node) {
  if (node.type() != pugi::node_element) return;
  builder_.gap(fmt::format("line {}", lines_.of(node)),
               fmt::format("element <{}> is not known here", node.name()), "nothing");
}

void Reader::check_attributes(const xml_node& node) {
  for (const auto& attribute : node.attributes())
    if (!lists(element_of(node).read, attribute.name()) &&
        !lists(element_of(node).kept, attribute.name()))
      builder_.gap(fmt::format("<{}>", node.name()),
                   fmt::format("attribute {} is not known here", attribute.name()), "nothing");
}

void Reader::check_link(const xml_node& link) {
  check_attributes(link);
  for (const xml_node& child : link.children()) unknown(child);
}

void Reader::keep_rest(const xml_node& node, Device& d) {
  check_attributes(node);
  for (const auto& attribute : node.attributes())
    if (!lists(element_of(node).read, attribute.name())) keep(d, node, attribute.name());
  for (const xml_node& child : node.children()) {
    if (child.type() != pugi::node_element || lists(element_of(node).children, child.name()))
      continue;
    unknown(child);
    d.elements.push_back(xml_text(child));
  }
}

}  // namespace

Result<Machine> read_nccl_xml_host(const NcclXmlHost& host, const Lines& lines,
                                   const std::string& source) {
  Reader reader(lines, host.name, source);
  if (host.system) reader.read_system(host.system);
  return reader.read(host.cpus);
}

}  // namespace crosstie
