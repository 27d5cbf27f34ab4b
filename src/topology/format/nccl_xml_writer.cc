// SPDX-License-Identifier: Apache-2.0
// Writes NCCL's topology XML.
//
// Only what is known is written; NCCL finds out the rest where it runs. Values that a source told
// and no property holds are written in its own words.
#include <endian.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "base/digest.h"
#include "base/printable.h"
#include "base/text.h"
#include "topology/format/formats.h"
#include "topology/format/nccl_xml_numbers.h"
#include "topology/format/nccl_xml_spelling.h"
#include "topology/rates.h"

namespace crosstie {
namespace {

using pugi::xml_attribute;
using pugi::xml_node;

constexpr size_t kMostNamed = 4;  // on the line of what is left out

constexpr std::string_view kNvswitchClass = "0x068000";
constexpr std::string_view kCpuClass = "0x068001";

// What had to be invented, and what no element could say.
struct Notes {
  std::vector<std::string> invented;
  std::set<std::string, NaturalOrder> left_out;
};

std::string class_of(const Device& d) {
  if (d.pci_class) return class_text(d.pci_class->value);
  switch (d.kind) {
    case DeviceKind::gpu:
      return "0x030200";
    case DeviceKind::nic:
      return "0x020000";
    case DeviceKind::nvswitch:
      return std::string(kNvswitchClass);
    default:
      return "0x060400";
  }
}

// In the source's words, unless another has told better.
std::string told_class_of(const Device& d) {
  const auto told = d.attributes.find("pci.class");
  const bool is_its_own =
      told != d.attributes.end() &&
      parse_class(told->second) == (d.pci_class ? std::optional(d.pci_class->value) : std::nullopt);
  return is_its_own ? told->second : class_of(d);
}

// Whether it is other than what NCCL assumes where it is not told.
template <class T>
bool tells(const Property<T>& property, T assumed_by_nccl) {
  return is_told(property) || (property && property->value != assumed_by_nccl);
}

// In the source's words; empty where it used none.
std::string own_words(const xml_node& node, const Device& d, const char* attribute) {
  const auto told = d.attributes.find(fmt::format("{}.{}", node.name(), attribute));
  return told == d.attributes.end() ? "" : told->second;
}

void put(xml_node node, const char* attribute, std::string_view text) {
  node.append_attribute(attribute) = std::string(text).c_str();
}

// An attribute that says nothing is told as well, as an empty link_speed is.
void put(xml_node node, const Device& d, const char* attribute, const std::string& text) {
  if (!text.empty())
    put(node, attribute, text);
  else if (d.attributes.contains(fmt::format("{}.{}", node.name(), attribute)))
    put(node, attribute, own_words(node, d, attribute));
}

void put_rest(xml_node node, const Device& d) {
  const std::string prefix = fmt::format("{}.", node.name());
  for (const auto& [key, text] : d.attributes)
    if (key.starts_with(prefix) && !node.attribute(key.c_str() + prefix.size()))
      put(node, key.c_str() + prefix.size(), text);
}

template <class T>
std::string number(const Property<T>& property) {
  return is_told(property) ? fmt::format("{:d}", property->value) : "";
}

// NCCL asks sysfs for what is not there, and knows switches of Broadcom by all four.
std::string id(uint16_t value) { return value == 0 ? "" : fmt::format("{:#06x}", value); }

// Of a link that is written all but the number of its lanes; those that lead nowhere tell it.
bool is_rest_of_link(const xml_node& kept) {
  const std::string_view name = kept.name();
  return (name == "nvlink" || name == "xgmi" || name == "c2c") && !kept.attribute("count");
}

// What is kept of a NIC's element; of a PCI function elements are kept beside it.
using NicWords = std::pair<std::map<std::string, std::string>, std::vector<std::string>>;
NicWords words_of_nic(const Device& d) {
  NicWords out;
  for (const auto& [key, text] : d.attributes)
    if (key.starts_with("nic.")) out.first.emplace(key, text);
  if (!d.pcie_speed) out.second = d.elements;
  return out;
}

// The cpu elements of one host, or of the hosts of one Machine.
class MachineWriter {
 public:
  MachineWriter(const Machine& machine, xml_node system, Notes& notes)
      : machine_(machine), system_(system), notes_(notes), links_(machine.devices().size()) {
    for (const Link& link : machine.links_as_nccl_takes_them()) {
      links_[link.a].push_back(link);
      links_[link.b].push_back({link.b, link.a, link.type, link.count, link.bandwidth});
    }
    children_.resize(machine.devices().size());
    give_addresses();
  }

  // host_hashes: of the Machine's hosts; empty: as it was told.
  void write(const std::vector<std::string>& host_hashes) {
    if (const size_t pairs = machine_.refusals().size(); pairs > 0)
      leave_out(fmt::format("refused peer access of {} pairs of GPUs", pairs));
    for (uint32_t i = 0; i < machine_.devices().size(); i++)
      if (device(i).kind == DeviceKind::numa)
        add_numa(i, host_hashes.empty() ? "" : host_hashes[device(i).host]);
  }

 private:
  const Device& device(uint32_t i) const { return machine_.devices()[i]; }
  // Of a GPU: no PCI function of its own, though it may tell its GPU's address.
  bool is_partition(uint32_t i) const {
    return device(i).kind == DeviceKind::gpu && machine_.is_part(device(i));
  }
  void give_addresses();
  void add_numa(uint32_t i, const std::string& host_hash);
  void add_children(xml_node node, uint32_t i);
  void add_pci(xml_node parent, uint32_t i);
  void add_pcie_link(xml_node pci, const Device& d);
  void add_gpu(xml_node pci, uint32_t i);
  void add_link(xml_node gpu, const Link& link);
  void add_bundle(xml_node gpu, const Link& link);
  void add_nic(xml_node parent, uint32_t i);
  void add_port(xml_node nic, uint32_t i);
  std::string guid_of(const Device& port) const;
  void add_pci_links(xml_node pci, uint32_t i);
  void add_elements(xml_node node, const Device& d, bool beneath_gpu);
  void add_to_system(const std::string& text);
  void add_to_link(xml_node gpu, xml_node rest, const Device& d);
  void complete(xml_node link, xml_node rest, const Device& d);
  void leave_out(std::string what) { notes_.left_out.insert(std::move(what)); }

  const Machine& machine_;
  xml_node system_;
  Notes& notes_;
  std::vector<std::vector<Link>> links_;  // by device, which is their end `a`
  std::vector<std::vector<uint32_t>> children_;
  std::vector<std::string> addresses_;
  NicWords words_of_last_nic_;
  std::set<xml_node> completed_;  // links
};

// Elements refer to each other by bus id, so that each has one.
void MachineWriter::give_addresses() {
  std::set<Bdf> used;
  for (const Device& d : machine_.devices())
    if (d.identity.bdf) used.insert(*d.identity.bdf);
  uint32_t next = 0;
  for (uint32_t i = 0; i < machine_.devices().size(); i++) {
    const Device& d = device(i);
    if (d.parent != kNoDevice) children_[d.parent].push_back(i);
    const bool on_pci = (d.kind == DeviceKind::gpu && !is_partition(i)) ||
                        d.kind == DeviceKind::pci_switch || d.kind == DeviceKind::nvswitch ||
                        (d.kind == DeviceKind::nic && d.pcie_speed);
    std::optional<Bdf> bdf = d.identity.bdf;
    while (on_pci && !bdf && !d.attributes.contains("pci.busid")) {
      const Bdf free{0xffff - (next >> 13), static_cast<uint8_t>(next >> 5),
                     static_cast<uint8_t>(next & 0x1f), 0};
      next++;
      if (!used.insert(free).second) continue;
      bdf = free;
      notes_.invented.push_back(fmt::format("{} of {}", to_text(free), d.label));
    }
    addresses_.push_back(bdf ? to_text(*bdf) : "");
  }
}

void MachineWriter::add_numa(uint32_t i, const std::string& host_hash) {
  const Device& d = device(i);
  xml_node cpu = system_.append_child("cpu");
  put(cpu, d, "host_hash", host_hash);
  put(cpu, "numaid", d.identity.number ? std::to_string(*d.identity.number) : "-1");
  put(cpu, d, "affinity", "");
  // Of what is not there each rank of NCCL looks up that of its own GPU's CPU alone, and then takes
  // its CPU and the other ranks' for different ones. With none of its own it pins no thread.
  if (machine_.count(DeviceKind::numa) > 1 && !cpu.attribute("affinity")) put(cpu, "affinity", "");
  if (is_told(d.cpu)) {
    const CpuModel& model = d.cpu->value;
    put(cpu, d, "arch", model.arch);
    put(cpu, d, "vendor", model.vendor);
    const bool x86 = model.arch == "x86_64";
    const std::string family = own_words(cpu, d, "familyid");
    if (x86 || model.family != 0)
      put(cpu, "familyid", family.empty() ? std::to_string(model.family) : family);
    if (x86 || model.model != 0) put(cpu, "modelid", std::to_string(model.model));
  }
  put_rest(cpu, d);
  put_rest(system_, d);
  add_children(cpu, i);
  add_elements(cpu, d, false);
}

void MachineWriter::add_children(xml_node node, uint32_t i) {
  for (const uint32_t child : children_[i]) {
    const Device& d = device(child);
    if (is_partition(child))
      leave_out(fmt::format("{} (a partition of {})", d.label, device(i).label));
    else if (d.kind == DeviceKind::nic && !d.pcie_speed)
      add_nic(node, child);
    else if (d.kind != DeviceKind::port)
      add_pci(node, child);
  }
}

void MachineWriter::add_pci(xml_node parent, uint32_t i) {
  const Device& d = device(i);
  xml_node pci = parent.append_child("pci");
  put(pci, d, "busid", addresses_[i]);
  const bool only_address_told = d.kind == DeviceKind::pci_switch && d.identity.bdf && !d.pci_class;
  put(pci, d, "class", only_address_told ? "" : told_class_of(d));
  if (is_told(d.pci_ids)) {
    const PciIds& ids = d.pci_ids->value;
    put(pci, d, "vendor", id(ids.vendor));
    put(pci, d, "device", id(ids.device));
    put(pci, d, "subsystem_vendor", id(ids.subsystem_vendor));
    put(pci, d, "subsystem_device", id(ids.subsystem_device));
  }
  add_pcie_link(pci, d);
  put_rest(pci, d);
  if (d.kind == DeviceKind::gpu) add_gpu(pci, i);
  if (d.kind == DeviceKind::nic) add_nic(pci, i);
  add_pci_links(pci, i);
  add_children(pci, i);
  add_elements(pci, d, false);
}

// NCCL reads what is missing from sysfs; of a device that is not there it must be told something,
// and it takes these for unknown.
void MachineWriter::add_pcie_link(xml_node pci, const Device& d) {
  const bool knows_speed = tells(d.pcie_speed, kAssumedPcieSpeed);
  const bool knows_lanes = tells(d.pcie_lanes, kAssumedPcieLanes);
  const std::string* const own = pcie_speed_unknown_to_nccl(d);
  put(pci, d, "link_speed",
      own != nullptr ? *own
      : knows_speed  ? fmt::format("{:.1f} GT/s PCIe", d.pcie_speed->value)
                     : "");
  put(pci, d, "link_width", knows_lanes ? std::to_string(d.pcie_lanes->value) : "");
  if (d.identity.bdf) return;
  if (!knows_speed && !pci.attribute("link_speed")) put(pci, "link_speed", "");
  if (!knows_lanes && !pci.attribute("link_width")) put(pci, "link_width", "0");
}

void MachineWriter::add_gpu(xml_node pci, uint32_t i) {
  const Device& d = device(i);
  xml_node gpu = pci.append_child("gpu");
  put(gpu, d, "dev", number(d.index));
  put(gpu, d, "sm", d.attributes.contains("gpu.gcn") ? "" : number(d.compute_capability));
  put(gpu, d, "rank", "");
  put(gpu, d, "gdr", number(d.gpu_direct));
  put_rest(gpu, d);
  for (const Link& link : links_[i]) add_link(gpu, link);
  add_elements(gpu, d, true);
  // Of a GPU that nobody looked at, files tell no more than the PCI function.
  if (!gpu.first_attribute() && !gpu.first_child()) pci.remove_child(gpu);
}

void MachineWriter::add_link(xml_node gpu, const Link& link) {
  if (link.type == LinkType::nvlink || link.type == LinkType::xgmi) return add_bundle(gpu, link);
  if (link.type != LinkType::c2c) return;
  if (!link.bandwidth)
    return leave_out(
        fmt::format("the C2C link of {}, whose speed is not known", device(link.a).label));
  xml_node c2c = gpu.append_child("c2c");
  const double each = link.bandwidth->value.bytes_per_second / link.count / 1e6;
  put(c2c, "bw", std::to_string(std::llround(each)));
  put(c2c, "count", std::to_string(link.count));
}

void MachineWriter::add_bundle(xml_node gpu, const Link& link) {
  const Device& other = device(link.b);
  xml_node bundle = gpu.append_child(std::string(name(link.type)).c_str());
  const bool to_cpu = other.kind == DeviceKind::numa;
  if (!to_cpu) put(bundle, "target", addresses_[link.b]);
  put(bundle, "count", std::to_string(link.count));
  put(bundle, "tclass", to_cpu ? std::string(kCpuClass) : class_of(other));
}

// Beneath a NUMA node or a bridge, or the NIC's own PCI function. Those that are no PCI functions
// share an element, if the same is kept of it.
void MachineWriter::add_nic(xml_node parent, uint32_t i) {
  const auto is_port = [&](uint32_t child) { return device(child).kind == DeviceKind::port; };
  if (std::ranges::none_of(children_[i], is_port)) return;
  const Device& d = device(i);
  xml_node nic = parent.last_child();
  const bool shared =
      std::string_view(nic.name()) == "nic" && words_of_last_nic_ == words_of_nic(d);
  if (!shared) {
    nic = parent.append_child("nic");
    words_of_last_nic_ = words_of_nic(d);
    put_rest(nic, d);
  }
  for (const uint32_t child : children_[i])
    if (is_port(child)) add_port(nic, child);
  if (!shared && !d.pcie_speed) add_elements(nic, d, false);
}

// As NCCL writes it: the whole card's, in the order of bytes that is the wire's; of what is no card
// its number.
std::string MachineWriter::guid_of(const Device& port) const {
  const auto& own = port.identity.guid;
  if (own && *own < kLeastGuid) return fmt::format("{:#x}", *own);
  const auto& card = device(port.parent).sys_image_guid;
  return card || own ? fmt::format("{:#x}", htobe64(card ? card->value : *own)) : "";
}

void MachineWriter::add_port(xml_node nic, uint32_t i) {
  const Device& d = device(i);
  xml_node net = nic.append_child("net");
  put(net, d, "name", d.identity.name.empty() ? d.label : d.identity.name);
  put(net, d, "dev", number(d.index));
  if (is_told(d.latency))
    put(net, "latency", fmt::format("{:.6g}", d.latency->value.count() * 1e6));
  for (const Link& link : links_[i])
    if (link.type == LinkType::net && link.bandwidth && is_told(link.bandwidth))
      put(net, "speed",
          std::to_string(std::llround(link.bandwidth->value.bytes_per_second * 8 / 1e6)));
  put(net, "port", std::to_string(d.identity.number.value_or(0)));
  // One of its own that is none but 0 is told where the card has no better.
  const std::string own_guid = own_words(net, d, "guid");
  put(net, d, "guid", own_guid.find_first_not_of("0x") == own_guid.npos ? guid_of(d) : own_guid);
  put(net, d, "gdr", number(d.gpu_direct));
  put(net, d, "rail", number(d.rail));
  put_rest(net, d);
  add_elements(net, d, false);
}

// What joins the two switches of one chip.
void MachineWriter::add_pci_links(xml_node pci, uint32_t i) {
  for (const Link& link : links_[i])
    if (link.type == LinkType::local && device(i).kind == DeviceKind::pci_switch &&
        device(link.b).kind == DeviceKind::pci_switch)
      put(pci.append_child("pcilink"), "target", addresses_[link.b]);
}

// With the first NUMA node elements of the whole are kept.
void MachineWriter::add_to_system(const std::string& text) {
  pugi::xml_document kept;
  if (!kept.load_string(text.c_str())) return leave_out("an element of the system that is no XML");
  for (const xml_node& child : kept.child("system").children()) system_.append_copy(child);
}

// Of several links of a GPU to one target, which are written as one, the first tells how.
void MachineWriter::complete(xml_node link, xml_node rest, const Device& d) {
  const bool is_first = completed_.insert(link).second;
  for (const auto& attribute : rest.attributes()) {
    const std::string_view name = attribute.name(), told = attribute.value();
    xml_attribute own = link.attribute(attribute.name());
    if (!own)
      link.append_copy(attribute);
    else if (name == "target" || own.value() == told)
      continue;
    else if (is_first)
      own.set_value(attribute.value());
    else
      leave_out(fmt::format("{}=\"{}\" of another link of {} to one target", name, told, d.label));
  }
}

// What a source told of a link beyond what it is goes to where that was written.
void MachineWriter::add_to_link(xml_node gpu, xml_node rest, const Device& d) {
  const auto target = [](const xml_node& link) {
    const auto bdf = parse_bdf(link.attribute("target").value());
    return bdf ? to_text(*bdf) : "";
  };
  xml_node link = gpu.child(rest.name());
  while (link != rest && target(link) != target(rest)) link = link.next_sibling(rest.name());
  if (link == rest) {
    leave_out(fmt::format("what is told beyond its end of a link of {}", d.label));
  } else {
    complete(link, rest, d);
    for (const xml_node& child : rest.children()) link.append_copy(child);
  }
  gpu.remove_child(rest);
}

// A second gpu element of a function stands beside the first, all else that is kept of a GPU in it.
void MachineWriter::add_elements(xml_node node, const Device& d, bool beneath_gpu) {
  for (const std::string& text : d.elements) {
    const bool is_gpu =
        text.starts_with("<gpu ") || text.starts_with("<gpu/") || text.starts_with("<gpu>");
    if (d.kind == DeviceKind::gpu && beneath_gpu == is_gpu) continue;
    if (text.starts_with("<system>")) {
      add_to_system(text);
      continue;
    }
    if (!node.append_buffer(text.data(), text.size()))
      leave_out(fmt::format("an element of {} that is no XML", d.label));
    else if (const xml_node added = node.last_child(); beneath_gpu && is_rest_of_link(added))
      add_to_link(node, added, d);
  }
}

std::string told_hash(const Machine& machine, uint32_t host) {
  for (const Device& d : machine.devices())
    if (d.kind == DeviceKind::numa && d.host == host)
      if (const auto told = d.attributes.find("cpu.host_hash"); told != d.attributes.end())
        return told->second;
  return {};
}

// One for each host of a domain: that which a file told, or one of its name.
std::vector<std::string> host_hashes(const Host& host, std::set<std::string>& used) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < host.machine->host_count(); i++) {
    std::string hash = told_hash(*host.machine, i);
    for (uint32_t round = 0; hash.empty() || !used.insert(hash).second; round++)
      hash = fmt::format("{:#018x}", Digest().add(host.name).add(i).add(round).value());
    out.push_back(hash);
  }
  return out;
}

Status expect_one_domain(const Topology& topology) {
  if (topology.hosts.empty()) return fail(Code::invalid, "there is no host to write");
  for (const Host& host : topology.hosts)
    if (topology.hosts.size() > 1 &&
        (host.domain.empty() || host.domain != topology.hosts[0].domain))
      return fail(Code::unsupported,
                  "NCCL's XML describes one host, or the hosts of one NVLink domain, and these are "
                  "{} hosts of none or several; write one of them",
                  topology.hosts.size());
  return {};
}

// RCCL's dialect has version 2, and NCCL takes none but 1.
bool is_for_rccl(const Topology& topology) {
  for (const Host& host : topology.hosts) {
    for (const Device& d : host.machine->devices())
      if (d.attributes.contains("gpu.gcn")) return true;
    for (const Link& link : host.machine->links())
      if (link.type == LinkType::xgmi) return true;
  }
  return false;
}

std::string left_out_text(const Notes& notes, size_t most_named) {
  if (notes.left_out.empty()) return {};
  return fmt::format("left out, as NCCL's XML has no words for it: {}",
                     some_of(notes.left_out, most_named));
}

std::string comment(const Notes& notes) {
  std::string out;
  if (!notes.invented.empty())
    out += fmt::format("Bus ids that nobody told and that are invented here: {}.\n",
                       fmt::join(notes.invented, ", "));
  if (!notes.left_out.empty())
    out += fmt::format("{}.\n", left_out_text(notes, notes.left_out.size()));
  if (out.empty()) return out;
  std::ranges::replace_if(
      out, [](char c) { return c != '\n' && (c < ' ' || c > '~' || c == '-' || c == '>'); }, '_');
  return fmt::format("<!-- {} -->\n", std::string_view(out).substr(0, out.size() - 1));
}

}  // namespace

Result<NcclXml> write_nccl_xml(const Topology& topology) {
  if (const Status right = expect_one_domain(topology); !right) return pass(right);
  pugi::xml_document document;
  xml_node system = document.append_child("system");
  const bool rccl = is_for_rccl(topology);
  put(system, "version", rccl ? "2" : "1");
  const Host& first = topology.hosts[0];
  put(system, "name", first.domain.empty() ? first.machine->name() : first.domain);
  Notes notes;
  std::set<std::string> used;
  for (const Host& host : topology.hosts) {
    const bool several = topology.hosts.size() > 1 || host.machine->host_count() > 1;
    MachineWriter writer(*host.machine, system, notes);
    writer.write(several ? host_hashes(host, used) : std::vector<std::string>());
  }
  auto spelled = spell_for_nccl(system, rccl);
  if (!spelled) return pass(spelled);
  std::string text = comment(notes) + *spelled;
  // Numbers that no machine has, as a file may tell, would be refused wherever they are read.
  auto again = read_nccl_xml(text, "what would be written");
  if (!again)
    return fail(Code::unsupported, "cannot be written as NCCL's XML: {}", again.error().text);
  return NcclXml{std::move(text), std::move(*again), printable(left_out_text(notes, kMostNamed))};
}

Result<std::string> nccl_xml_text(const Topology& topology) {
  auto written = write_nccl_xml(topology);
  if (!written) return pass(written);
  return std::move(written->text);
}

}  // namespace crosstie
