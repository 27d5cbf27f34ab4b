// SPDX-License-Identifier: Apache-2.0
#include "topology/path.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "topology/rates.h"

namespace crosstie {
namespace {

// What a link alone makes of a path; the network's does not count.
PathClass class_of_link(LinkType type) {
  switch (type) {
    case LinkType::nvlink:
    case LinkType::xgmi:
      return PathClass::nvl;
    case LinkType::c2c:
      return PathClass::c2c;
    case LinkType::pci:
      return PathClass::pix;
    case LinkType::sys:
      return PathClass::sys;
    case LinkType::local:
    case LinkType::net:
      break;
  }
  return PathClass::loc;
}

// A channel's share of NICs starts elsewhere on every GPU: the bits of its number, mirrored.
uint32_t mirror_bits(uint32_t value, size_t power_of_two) {
  uint32_t mirrored = 0;
  for (uint32_t from = 1, to = static_cast<uint32_t>(power_of_two) / 2; to > 0; from *= 2, to /= 2)
    if (value & from) mirrored |= to;
  return mirrored;
}

// Broadcom's PEX switches show each port as a bridge of its own beneath that of the chip. NCCL
// knows them by vendor, device and subsystem but for its last 12 bits. 0: none of them.
int pex_generation(const Device& d, uint64_t level) {
  if (d.kind != DeviceKind::pci_switch || !d.pci_ids) return 0;
  const PciIds& ids = d.pci_ids->value;
  const uint64_t family = (uint64_t{ids.vendor} << 48 | uint64_t{ids.device} << 32 |
                           uint64_t{ids.subsystem_vendor} << 16 | ids.subsystem_device) &
                          ~uint64_t{0xfff};
  if (family == 0x1000c0101000a000) return 4;
  return family == (0x1000c03010000000 | level << 12) ? 5 : 0;
}

// NCCL makes nothing of the xGMI in RCCL's files, which tell no rate of it: that is assumed.
std::vector<Link> links_that_nccl_counts(const Machine& machine) {
  auto links = machine.links_as_nccl_takes_them();
  std::erase_if(links, [](const Link& link) {
    return link.type == LinkType::xgmi && !is_told(link.bandwidth);
  });
  return links;
}

constexpr size_t kNoRow = SIZE_MAX;

// Of two in a row what fits through; of equals that which is known the worst.
Known<Bandwidth> narrower(const Known<Bandwidth>& a, const Known<Bandwidth>& b) {
  return std::tie(b.value, b.from) < std::tie(a.value, a.from) ? b : a;
}

bool ends_path(DeviceKind kind) {
  return kind == DeviceKind::numa || kind == DeviceKind::gpu || kind == DeviceKind::port ||
         kind == DeviceKind::nvswitch;
}

}  // namespace

Status paths_fit(const Machine& machine) {
  // Cells of 32 bytes: half a GiB. A domain of 576 GPUs takes a fifth of it.
  constexpr size_t kMostCells = size_t{1} << 24;
  const auto devices = machine.devices();
  const auto ends = static_cast<size_t>(
      std::ranges::count_if(devices, [](const Device& d) { return ends_path(d.kind); }));
  if (ends <= kMostCells / devices.size()) return {};
  return fail(Code::unsupported,
              "{}: too large for its paths to be found: {} devices, of them {} GPUs, ports, NUMA "
              "nodes and NVSwitches; as a tree or JSON it can be shown",
              machine.source(), devices.size(), ends);
}

Paths::Paths(const Machine& machine, View view) : machine_(machine) {
  give_nodes();
  fuse_switch_chips();
  if (view == View::physical) fuse_idle_switches();
  give_rows();
  if (view == View::physical)
    add_edges(machine.links());
  else
    add_edges(links_that_nccl_counts(machine));
  for (uint32_t i = 0; i < node_.size(); i++)
    if (row_[i] != kNoRow && node_[i] == i) search(i);
  cpu_.assign(node_.size(), kNoDevice);
  for (const uint32_t gpu : gpus_) cpu_[gpu] = local_cpu(gpu);
  prefer_chip_to_chip();
  if (view == View::physical) return;
  keep_peers_close();
  measure_networks();
  reach_ports();
}

void Paths::give_nodes() {
  uint32_t nvswitch = kNoDevice;
  through_.assign(machine_.devices().size(), {kLocal, Provenance::assumed});
  for (uint32_t i = 0; i < machine_.devices().size(); i++) {
    if (kind(i) == DeviceKind::nvswitch && nvswitch == kNoDevice) nvswitch = i;
    node_.push_back(kind(i) == DeviceKind::nvswitch ? nvswitch : i);
    // What a GPU or NIC is divided into reaches all else as the whole does, but for host_between().
    const Device& d = machine_.devices()[i];
    if (machine_.is_part(d)) {
      node_[i] = node_[d.parent];
      continue;
    }
    if (kind(i) == DeviceKind::numa) numas_.push_back(i);
    if (kind(i) == DeviceKind::gpu) gpus_.push_back(i);
    if (kind(i) == DeviceKind::port) ports_.push_back(i);
  }
}

// The bridges right beneath that of a chip are part of it.
void Paths::fuse_switch_chips() {
  const auto devices = machine_.devices();
  for (uint32_t i = 0; i < devices.size(); i++) {
    const uint32_t parent = devices[i].parent;
    if (parent == kNoDevice || node_[parent] != parent) continue;
    const int generation = pex_generation(devices[parent], 0);
    if (generation != 0 && pex_generation(devices[i], 1) == generation) node_[i] = parent;
  }
}

// Some switches show a bridge too many, on some boots of some hosts, above a single device or
// switch. Where nothing branches off nothing is switched: such a one counts as part of the switch
// above it, and what is below it as beside that one's other devices. NCCL takes it for a switch.
void Paths::fuse_idle_switches() {
  const auto devices = machine_.devices();
  std::vector<uint32_t> children(devices.size());
  for (const Device& d : devices)
    if (d.parent != kNoDevice) children[d.parent]++;
  for (const Link& link : machine_.links()) {
    const auto [above, i] = std::pair(link.a, link.b);
    if (devices[i].parent != above || children[i] != 1 || node_[i] != i || !link.bandwidth ||
        kind(i) != DeviceKind::pci_switch || kind(above) != DeviceKind::pci_switch)
      continue;
    node_[i] = node_[above];
    through_[i] = narrower(through_[above], *link.bandwidth);
  }
}

void Paths::give_rows() {
  size_t rows = 0;
  row_.assign(node_.size(), kNoRow);
  for (uint32_t i = 0; i < node_.size(); i++) {
    const DeviceKind k = kind(i);
    if (node_[i] != i)
      row_[i] = row_[node_[i]];
    else if (ends_path(k))
      row_[i] = rows++;
  }
  cells_.resize(rows * node_.size());
}

bool Paths::joins(const Link& link, DeviceKind a, DeviceKind b) const {
  return (kind(link.a) == a && kind(link.b) == b) || (kind(link.a) == b && kind(link.b) == a);
}

// In the order in which NCCL looks at them, which decides between equals: the widest first, the
// one towards the CPU last.
void Paths::add_edges(std::span<const Link> links) {
  edges_.resize(node_.size());
  std::map<std::tuple<uint32_t, uint32_t, LinkType>, size_t> places;
  // The links of a GPU to all NVSwitches are one.
  const auto add = [&](uint32_t from, uint32_t to, LinkType type, const Known<Bandwidth>& rate) {
    const auto [place, is_new] = places.emplace(std::tuple(from, to, type), edges_[from].size());
    if (is_new) return edges_[from].push_back({to, type, rate});
    Known<Bandwidth>& whole = edges_[from][place->second].rate;
    whole.value.bytes_per_second += rate.value.bytes_per_second;
    whole.from = std::min(whole.from, rate.from);
  };
  for (const Link& link : links) {
    if (!link.bandwidth) continue;
    // NCCL hangs a NIC that is no PCI function on the CPU by an endless PCI link.
    if (node_[link.a] == node_[link.b]) continue;
    const bool bare =
        link.type == LinkType::local && joins(link, DeviceKind::numa, DeviceKind::nic);
    const LinkType type = bare ? LinkType::pci : link.type;
    const Known<Bandwidth> rate = narrower(*link.bandwidth, through_[link.a]);
    add(node_[link.a], node_[link.b], type, rate);
    add(node_[link.b], node_[link.a], type, rate);
  }
  for (uint32_t i = 0; i < edges_.size(); i++) {
    std::ranges::stable_sort(edges_[i], std::greater(), [](const Edge& e) { return e.rate.value; });
    const uint32_t parent = machine_.devices()[i].parent;
    if (parent == kNoDevice) continue;
    const uint32_t above = node_[parent];
    std::ranges::stable_partition(edges_[i], [above](const Edge& e) { return e.to != above; });
  }
}

// Breadth first, so that fewer hops win, and of as few the wider path.
void Paths::search(uint32_t base) {
  cell(base, base) = {{PathClass::loc, kLocal, 0}, base, kNoDevice};
  std::vector<uint32_t> now = {base}, next;
  std::vector<bool> waits(node_.size());
  while (!now.empty()) {
    for (const uint32_t node : now)
      for (const Edge& edge : edges_[node])
        if (extend(base, node, edge) && !waits[edge.to]) {
          waits[edge.to] = true;
          next.push_back(edge.to);
        }
    now.swap(next);
    for (const uint32_t node : now) waits[node] = false;
    next.clear();
  }
}

// By the edge the path from its other end begins. False where there is as good a one.
bool Paths::extend(uint32_t base, uint32_t node, const Edge& edge) {
  const Cell& so_far = cell(node, base);
  Cell& longer = cell(edge.to, base);
  const Known<Bandwidth> rate = narrower(so_far.path.rate(), edge.rate);
  // A GPU hands on only from one GPU to another, by NVLink, and once.
  const bool hands_on =
      edge.type == LinkType::nvlink && kind(edge.to) == DeviceKind::gpu && so_far.path.hops <= 1;
  if (node != base && kind(node) == DeviceKind::gpu && !hands_on) return false;
  const bool is_new = longer.next == kNoDevice;
  if (!(is_new || longer.path.hops > so_far.path.hops) || longer.path.bandwidth >= rate.value)
    return false;
  longer = {
      {class_of(so_far, node, edge), rate.value, so_far.path.hops + 1, rate.from}, node, kNoDevice};
  return true;
}

PathClass Paths::class_of(const Cell& so_far, uint32_t node, const Edge& edge) const {
  PathClass type = class_of_link(edge.type);
  const DeviceKind a = kind(node), b = kind(edge.to);
  if (a == DeviceKind::pci_switch && b == DeviceKind::pci_switch) type = PathClass::pxb;
  if (edge.type == LinkType::pci && (a == DeviceKind::numa || b == DeviceKind::numa))
    type = PathClass::phb;
  if (a == DeviceKind::gpu && so_far.path.type == PathClass::nvl && type == PathClass::nvl)
    type = PathClass::nvb;
  return std::max(so_far.path.type, type);
}

Path Paths::between(uint32_t from, uint32_t to) const {
  if (row_[to] == kNoRow) return {};
  const uint32_t host = host_between(from, to);
  return host == kNoDevice ? path(from, to) : joined(host, from, to);
}

// The NUMA node by which two GPUs reach each other where one is a partition without peers.
uint32_t Paths::host_between(uint32_t from, uint32_t to) const {
  const auto alone = [&](uint32_t i) { return machine_.has_no_peers(machine_.devices()[i]); };
  if (from == to || kind(from) != DeviceKind::gpu || kind(to) != DeviceKind::gpu ||
      !(alone(from) || alone(to)))
    return kNoDevice;
  return cpu_[node_[to]];
}

std::vector<uint32_t> Paths::chain(uint32_t from, uint32_t to) const {
  std::vector<uint32_t> devices;
  const uint32_t end = node_[to];
  for (uint32_t node = node_[from]; node != kNoDevice; node = cell(node, to).next) {
    devices.push_back(node);
    if (node == end) return devices;
  }
  return {};
}

std::vector<uint32_t> Paths::route(uint32_t from, uint32_t to) const {
  if (row_[to] == kNoRow) return {};
  const uint32_t host = host_between(from, to);
  const uint32_t via = host == kNoDevice ? cell(from, to).via : host;
  if (via == kNoDevice) return chain(from, to);
  auto devices = route(from, via);
  const auto rest = route(via, to);
  if (!rest.empty()) devices.insert(devices.end(), rest.begin() + 1, rest.end());
  return devices;
}

std::vector<Paths::Step> Paths::steps(uint32_t from, uint32_t to) const {
  const auto devices = route(from, to);
  std::vector<Step> steps;
  for (size_t i = 0; i + 1 < devices.size(); i++) {
    const uint32_t next = devices[i + 1];
    const Edge* widest = nullptr;
    for (const Edge& edge : edges_[devices[i]])
      if (edge.to == next && (widest == nullptr || edge.rate.value > widest->rate.value))
        widest = &edge;
    if (widest != nullptr) steps.push_back({devices[i], next, widest->type, widest->rate});
  }
  return steps;
}

Path Paths::joined(uint32_t via, uint32_t from, uint32_t to) const {
  const Path first = path(from, via), second = path(via, to);
  const Known<Bandwidth> rate = narrower(first.rate(), second.rate());
  return {std::max(first.type, second.type), rate.value, first.hops + second.hops, rate.from};
}

void Paths::go_by_way_of(uint32_t via, uint32_t from, uint32_t to) {
  Cell& whole = cell(from, to);
  whole.path = joined(via, from, to);
  whole.via = via;
  if (kind(via) == DeviceKind::gpu) whole.path.type = PathClass::pxn;
}

// Peer-to-peer goes no further than through PCIe switches, but between any two GPUs of an AMD CPU
// where there are only two.
void Paths::keep_peers_close() {
  const auto& cpu = numas_.empty() ? Property<CpuModel>{} : machine_.devices()[numas_[0]].cpu;
  const bool amd = cpu && cpu->value.vendor == "AuthenticAMD";
  const PathClass farthest = amd && gpus_.size() <= 2 ? PathClass::sys : PathClass::pxb;
  std::set<std::pair<uint32_t, uint32_t>> refused;
  for (const Refusal& refusal : machine_.refusals()) refused.emplace(refusal.a, refusal.b);
  for (const uint32_t to : gpus_)
    for (const uint32_t from : gpus_) {
      const uint32_t cpu_of_to = cpu_[to];
      const bool is_far = path(from, to).type > farthest || refused.contains(std::minmax(from, to));
      if (is_far && cpu_of_to != kNoDevice) go_by_way_of(cpu_of_to, from, to);
    }
}

// Before anything refuses GPUDirect RDMA.
void Paths::measure_networks() {
  network_.resize(node_.size());
  for (const uint32_t gpu : gpus_)
    for (const uint32_t port : ports_)
      if (path(gpu, port).type <= PathClass::pxb)
        network_[gpu] = std::max(network_[gpu], path(gpu, port).bandwidth);
}

bool Paths::network_is_faster(uint32_t gpu, uint32_t other) const {
  return !network_.empty() && std::min(network_[gpu], network_[other]) > path(gpu, other).bandwidth;
}

void Paths::prefer_chip_to_chip() {
  for (const uint32_t port : ports_)
    for (const uint32_t gpu : gpus_) {
      const uint32_t cpu = cpu_[gpu];
      if (cpu == kNoDevice || path(gpu, cpu).type != PathClass::c2c ||
          path(gpu, port).type != PathClass::phb)
        continue;
      cell(gpu, port).path.type = cell(port, gpu).path.type = PathClass::p2c;
    }
}

void Paths::reach_ports() {
  for (const uint32_t port : ports_) {
    uint32_t peer = local_gpu(port);
    for (const uint32_t gpu : gpus_) {
      const Path own = path(port, gpu), best = peer == kNoDevice ? Path{} : path(port, peer);
      const bool is_near = own.type == best.type && own.bandwidth == best.bandwidth;
      bool changed = relay(gpu, peer, port) && is_near;
      const uint32_t cpu = cpu_[gpu];
      if (path(gpu, port).type < PathClass::phb && !may_use_gpu_direct(gpu, port) &&
          cpu != kNoDevice) {
        go_by_way_of(cpu, port, gpu);
        go_by_way_of(cpu, gpu, port);
        changed = true;
      }
      // NCCL looks for it each time; only paths of GPUs near the port can make it another.
      if (changed) peer = local_gpu(port);
    }
  }
}

// By the GPU that the port serves, where that one is near it and we have NVLink to it. Only on the
// way out: NCCL receives at the GPU that is meant. False where the path stays as it is.
bool Paths::relay(uint32_t gpu, uint32_t peer, uint32_t port) {
  if (machine_.devices()[port].host != machine_.devices()[gpu].host) return false;
  if (peer == gpu || peer == kNoDevice) return false;
  const Path own = path(gpu, port), of_peer = path(peer, port);
  if (of_peer.type > PathClass::p2c || path(peer, gpu).type > PathClass::nvl ||
      (of_peer.bandwidth <= own.bandwidth && own.type <= PathClass::pxn))
    return false;
  go_by_way_of(peer, gpu, port);
  return true;
}

// Where a file does not say whether it can, NCCL finds out on the machine; most can.
bool Paths::may_use_gpu_direct(uint32_t gpu, uint32_t port) const {
  for (const uint32_t end : {gpu, port}) {
    const auto& told = machine_.devices()[end].gpu_direct;
    if (told && !told->value) return false;
  }
  const Cell& cell = this->cell(gpu, port);
  const PathClass type =
      cell.path.type == PathClass::pxn ? path(cell.via, port).type : cell.path.type;
  return type <= PathClass::pxb || type == PathClass::p2c;
}

uint32_t Paths::local_cpu(uint32_t gpu) const {
  uint32_t nearest = kNoDevice;
  for (const uint32_t numa : numas_) {
    const uint32_t hops = path(gpu, numa).hops;
    if (hops > 0 && (nearest == kNoDevice || hops < path(gpu, nearest).hops)) nearest = numa;
  }
  return nearest;
}

// Those to which the paths are widest, and of these of the best class.
std::vector<uint32_t> Paths::nearest(uint32_t from, std::span<const uint32_t> among) const {
  std::vector<uint32_t> best;
  Path top;
  for (const uint32_t to : among) {
    const Path own = path(from, to);
    if (own.type == PathClass::dis) continue;
    if (own.bandwidth > top.bandwidth || (own.bandwidth == top.bandwidth && own.type < top.type)) {
      top = own;
      best.clear();
    }
    if (own.bandwidth == top.bandwidth && own.type == top.type) best.push_back(to);
  }
  return best;
}

// The ports near a GPU, and how many of them it uses itself: they are dealt out among the GPUs
// that are near the first of them.
Paths::Share Paths::share_of(uint32_t gpu) const {
  Share share{nearest(gpu, ports_), 1};
  if (share.ports.empty()) return share;
  const size_t gpus = std::max<size_t>(1, nearest(share.ports[0], gpus_).size());
  share.channels = (share.ports.size() + gpus - 1) / gpus;
  return share;
}

// The port that a GPU uses for one of its share's channels.
uint32_t Paths::port_for(uint32_t gpu, const Share& share, size_t channel) const {
  const size_t count = share.ports.size();
  const auto& index = machine_.devices()[gpu].index;
  auto first =
      static_cast<uint32_t>(index ? index->value : std::ranges::find(gpus_, gpu) - gpus_.begin());
  if (std::has_single_bit(count)) first = mirror_bits(first, count);
  return share.ports[(first + channel % share.channels) % count];
}

std::vector<uint32_t> Paths::ports_in_turn(uint32_t gpu) const {
  const Share share = share_of(gpu);
  std::vector<uint32_t> ports;
  for (size_t channel = 0; channel < share.channels && !share.ports.empty(); channel++)
    ports.push_back(port_for(gpu, share, channel));
  return ports;
}

uint32_t Paths::local_gpu(uint32_t port) const {
  const auto near = nearest(port, gpus_);
  std::vector<Share> shares;
  size_t channels = 0;
  for (const uint32_t gpu : near) {
    shares.push_back(share_of(gpu));
    channels = std::max(channels, shares.back().channels);
  }
  for (size_t channel = 0; channel < channels; channel++)
    for (size_t i = 0; i < near.size(); i++)
      if (!shares[i].ports.empty() && port_for(near[i], shares[i], channel) == port) return near[i];
  return kNoDevice;
}

}  // namespace crosstie
