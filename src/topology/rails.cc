// SPDX-License-Identifier: Apache-2.0
#include "topology/rails.h"

#include <algorithm>
#include <map>
#include <set>

#include "topology/assignment.h"

namespace crosstie {
namespace {

// Another port for every GPU is worth it only if it adds a tenth to what a GPU has: a 25 Gb/s port
// of the board's beside 400 Gb/s does not.
constexpr double kWorthwhile = 0.1;
// Up to so many pairs of slots the best matching is sought, whose cost grows with the cube: 256
// GPUs with a port each. Hosts have 16.
constexpr size_t kMostPairs = 256 * 256;
// More than any path has (1 PB/s): sums of so many stay within 64 bits.
constexpr double kMostBandwidth = 1e15;

constexpr std::string_view kNoCarrier = "no carrier";
constexpr std::string_view kNoLid = "no LID";
constexpr std::string_view kNoGpu = "no GPU on this host";
constexpr std::string_view kSoftware = "no PCI function";
constexpr std::string_view kNoRdma = "no RDMA, which others have";
constexpr std::string_view kSlow = "too slow beside the others";
constexpr std::string_view kSpare = "more ports than can be shared out evenly";
constexpr std::string_view kEnough = "its GPUs gain nothing by more ports";

// A GPU's share of ports, or a port's of GPUs: `number` counts what one device may take.
struct Slot {
  uint32_t device = 0;
  int64_t number = 0;
};

class Host {
 public:
  Host(const Machine& machine, const Paths& paths, Rails& rails)
      : machine_(machine), paths_(paths), rails_(rails) {}

  // By their places in Rails.
  void add_gpu(size_t gpu) { gpus_.push_back(gpu); }
  void add_port(size_t port) { ports_.push_back(port); }

  void match() {
    for (size_t i = 0; i < ports_.size(); i++)
      if (const auto& told = told_rail(i)) taken_.insert(told->value);
    leave_out_what_cannot_serve();
    if (!gpus_.empty() && !ports_.empty()) {
      const auto limits = limits_of_ports();
      pair(gpu_slots(), port_slots(limits));
      sort_by_speed();
    }
    number_rails();
  }

 private:
  uint32_t gpu(size_t i) const { return rails_.gpus[gpus_[i]].device; }
  uint32_t port(size_t i) const { return rails_.ports[ports_[i]].device; }
  const Property<int>& told_rail(size_t i) const { return machine_.devices()[port(i)].rail; }
  size_t ports_per_gpu() const {
    return std::clamp<size_t>(ports_.size() / gpus_.size(), 1, worthwhile_);
  }

  void leave_out(size_t i, std::string_view why) {
    rails_.ports[ports_[i]].idle = why;
    ports_.erase(ports_.begin() + static_cast<ptrdiff_t>(i));
  }

  void rule_out(size_t i, std::string_view why) {
    rails_.ports[ports_[i]].can_serve = false;
    leave_out(i, why);
  }

  // Network devices made of software (bridges, bonds, tunnels) serve only where there is no other,
  // and so do ports without RDMA, as a board's own.
  void leave_out_what_cannot_serve() {
    const auto devices = machine_.devices();
    const auto is_software = [&](size_t i) {
      const Device& nic = devices[devices[port(i)].parent];
      return !nic.identity.bdf && !nic.pcie_speed;
    };
    bool any_hardware = false;
    for (size_t i = ports_.size(); i-- > 0;) {
      if (has_no_carrier(devices[port(i)]))
        rule_out(i, kNoCarrier);
      else if (has_no_lid(devices[port(i)]))
        rule_out(i, kNoLid);
      else
        any_hardware |= !is_software(i);
    }
    for (size_t i = ports_.size(); i-- > 0;)
      if (any_hardware && is_software(i)) rule_out(i, kSoftware);
    const auto by_rdma = [&](size_t place) {
      return has_rdma(devices[rails_.ports[place].device]);
    };
    const bool any_rdma = std::ranges::any_of(ports_, by_rdma);
    for (size_t i = ports_.size(); i-- > 0;)
      if (any_rdma && !by_rdma(ports_[i])) rule_out(i, kNoRdma);
    if (gpus_.empty())
      for (const size_t i : ports_) rails_.ports[i].idle = kNoGpu;
  }

  int64_t bandwidth(uint32_t from, uint32_t port) const {
    const double rate = paths_.between(from, port).bandwidth.bytes_per_second;
    return static_cast<int64_t>(std::min(rate, kMostBandwidth));
  }

  // What a port carries by itself and its NIC's own PCIe link; how far its GPUs are is not its own.
  int64_t speed(size_t i) const {
    const auto devices = machine_.devices();
    return bandwidth(devices[devices[port(i)].parent].parent, port(i));
  }

  // How many GPUs each port may serve. Where that is one, slow ports are left out until as many
  // are left for every GPU as are worth it.
  std::vector<int64_t> limits_of_ports() {
    std::vector<int64_t> speeds;
    for (size_t i = 0; i < ports_.size(); i++) speeds.push_back(speed(i));
    const int64_t share = fair_share(speeds);
    const auto enough = [&](int64_t speed) { return speed >= share; };
    const bool one_each =
        static_cast<size_t>(std::ranges::count_if(speeds, enough)) >= gpus_.size();
    const int64_t slowest = one_each ? slowest_worthwhile(speeds) : share;
    std::vector<int64_t> limits;
    for (size_t i = speeds.size(); i-- > 0;) {
      if (speeds[i] < slowest)
        leave_out(i, kSlow);
      else
        limits.insert(limits.begin(), one_each ? 1 : sharers(speeds[i], share));
    }
    return limits;
  }

  int64_t sharers(int64_t speed, int64_t share) const {
    const auto all = static_cast<int64_t>(gpus_.size());
    return share == 0 ? all : std::min(all, speed / share);
  }

  // The most that every GPU can have where each has one port and some share theirs.
  int64_t fair_share(const std::vector<int64_t>& speeds) const {
    const auto serves_all = [&](int64_t share) {
      int64_t gpus = 0;
      for (const int64_t speed : speeds) gpus += sharers(speed, share);
      return gpus >= static_cast<int64_t>(gpus_.size());
    };
    int64_t best = 0, too_much = std::ranges::max(speeds) + 1;
    while (too_much - best > 1) {
      const int64_t share = best + (too_much - best) / 2;
      (serves_all(share) ? best : too_much) = share;
    }
    return best;
  }

  // Of as many ports for each GPU as there may be, while the next still adds something.
  int64_t slowest_worthwhile(std::vector<int64_t> speeds) {
    std::ranges::sort(speeds, std::greater());
    const size_t step = gpus_.size();
    int64_t slowest = speeds[step - 1];
    double have = static_cast<double>(slowest);
    for (size_t last = 2 * step; last <= speeds.size(); last += step) {
      const auto more = static_cast<double>(speeds[last - 1]);
      if (more < kWorthwhile * have) break;
      slowest = speeds[last - 1];
      have += more;
      worthwhile_++;
    }
    return slowest;
  }

  std::vector<Slot> gpu_slots() const {
    const auto each = static_cast<int64_t>(ports_per_gpu());
    std::vector<Slot> slots;
    for (uint32_t i = 0; i < gpus_.size(); i++)
      for (int64_t number = 0; number < each; number++) slots.push_back({i, number});
    return slots;
  }

  std::vector<Slot> port_slots(const std::vector<int64_t>& limits) const {
    std::vector<Slot> slots;
    for (uint32_t i = 0; i < ports_.size(); i++)
      for (int64_t number = 0; number < limits[i]; number++) slots.push_back({i, number});
    return slots;
  }

  void pair(const std::vector<Slot>& rows, const std::vector<Slot>& columns) {
    const auto cost = [&](size_t row, size_t column) {
      return cost_of(rows[row], row, columns[column], column);
    };
    const bool few = rows.size() <= kMostPairs / columns.size();
    const auto column_of =
        few ? assign(rows.size(), columns.size(), cost) : nearest_first(rows, columns);
    rails_.best &= few;
    std::vector<bool> serves(ports_.size());
    for (size_t row = 0; row < rows.size(); row++) {
      const size_t g = rows[row].device, p = columns[column_of[row]].device;
      if (paths_.between(gpu(g), port(p)).type == PathClass::dis) continue;
      rails_.gpus[gpus_[g]].ports.push_back(port(p));
      rails_.ports[ports_[p]].gpus.push_back(gpu(g));
      serves[p] = true;
    }
    const bool enough = ports_.size() / gpus_.size() > worthwhile_;
    for (size_t p = 0; p < ports_.size(); p++)
      if (!serves[p]) rails_.ports[ports_[p]].idle = enough ? kEnough : kSpare;
  }

  // Class by class each GPU takes the widest of the ports that are left: every port one GPU before
  // any port two, every GPU one port before any GPU two.
  std::vector<size_t> nearest_first(const std::vector<Slot>& rows,
                                    const std::vector<Slot>& columns) const {
    std::map<int64_t, std::vector<size_t>> rounds;
    for (size_t column = 0; column < columns.size(); column++)
      rounds[columns[column].number].push_back(column);
    std::vector<size_t> waiting(rows.size()), column_of(rows.size());
    for (size_t row = 0; row < rows.size(); row++) waiting[row] = row;
    std::ranges::stable_sort(waiting, {}, [&](size_t row) { return rows[row].number; });
    for (auto& [number, free] : rounds)
      for (size_t type = 0; type < Names<PathClass>::all.size(); type++)
        std::erase_if(waiting, [&](size_t row) {
          const auto port = [&](size_t column) { return columns[column].device; };
          const auto found = widest(rows[row].device, static_cast<PathClass>(type), free, port);
          if (found == free.end()) return false;
          column_of[row] = *found;
          free.erase(found);
          return true;
        });
    return column_of;
  }

  // The first of those columns whose paths are the widest of this class; the end if there is none.
  std::vector<size_t>::const_iterator widest(uint32_t g, PathClass type,
                                             const std::vector<size_t>& free,
                                             const auto& port_of) const {
    auto best = free.end();
    Bandwidth most{};
    for (auto at = free.begin(); at != free.end(); ++at) {
      const Path path = paths_.between(gpu(g), port(port_of(*at)));
      if (path.type != type || (best != free.end() && path.bandwidth <= most)) continue;
      best = at;
      most = path.bandwidth;
    }
    return best;
  }

  // First that no port serves many while another serves few; then classes, the farthest first; then
  // bandwidth, and what a GPU's first port carries weighs more than what its second does, so that
  // the fastest ports go to different GPUs; then the order, where squares keep pairs from crossing.
  Cost cost_of(const Slot& row, size_t r, const Slot& column, size_t c) const {
    const Path path = paths_.between(gpu(row.device), port(column.device));
    const int64_t rate = bandwidth(gpu(row.device), port(column.device));
    const auto off = static_cast<int64_t>(r) - static_cast<int64_t>(c);
    Cost cost;
    cost.entries[0] = column.number;
    cost.entries[1 + static_cast<size_t>(PathClass::dis) - static_cast<size_t>(path.type)] = 1;
    cost.entries[13] = -rate;
    cost.entries[14] = -rate * (static_cast<int64_t>(ports_per_gpu()) - row.number);
    cost.entries[15] = off * off;
    return cost;
  }

  void sort_by_speed() {
    for (const size_t g : gpus_) {
      Rails::Gpu& served = rails_.gpus[g];
      std::ranges::sort(served.ports, {}, [&](uint32_t port) {
        return std::pair(-bandwidth(served.device, port), port);
      });
    }
  }

  // Without GPUs every port that could serve is a rail. Those of which none is told get free ones.
  void number_rails() {
    std::vector<std::pair<uint32_t, size_t>> order;  // the first GPU served, the port
    for (size_t i = 0; i < ports_.size(); i++) {
      const auto& gpus = rails_.ports[ports_[i]].gpus;
      if (!told_rail(i) && (gpus_.empty() || !gpus.empty()))
        order.emplace_back(gpus.empty() ? 0 : gpus[0], ports_[i]);
    }
    std::ranges::sort(order);
    int rail = 0;
    for (const auto& [gpu, p] : order) {
      while (taken_.contains(rail)) rail++;
      rails_.ports[p].rail = static_cast<uint32_t>(rail++);
    }
  }

  const Machine& machine_;
  const Paths& paths_;
  Rails& rails_;
  std::vector<size_t> gpus_, ports_;
  std::set<int> taken_;    // rails that are told of a port
  size_t worthwhile_ = 1;  // so many ports a GPU
};

// The GPU that a partition (MIG, CPX) is part of; of a whole one, itself.
uint32_t whole_gpu(const Machine& machine, uint32_t gpu) {
  while (machine.is_part(machine.devices()[gpu])) gpu = machine.devices()[gpu].parent;
  return gpu;
}

void share_with_partitions(const Machine& machine, Rails& rails) {
  std::map<uint32_t, const Rails::Gpu*> served;
  for (const Rails::Gpu& gpu : rails.gpus) served.emplace(gpu.device, &gpu);
  for (Rails::Gpu& gpu : rails.gpus)
    if (const uint32_t whole = whole_gpu(machine, gpu.device); whole != gpu.device)
      gpu.ports = served.at(whole)->ports;
}

}  // namespace

Rails match_rails(const Machine& machine, const Paths& physical) {
  Rails rails;
  std::map<uint32_t, Host> hosts;
  const auto devices = machine.devices();
  for (uint32_t i = 0; i < devices.size(); i++) {
    if (devices[i].kind != DeviceKind::gpu && devices[i].kind != DeviceKind::port) continue;
    Host& host = hosts.try_emplace(devices[i].host, machine, physical, rails).first->second;
    if (devices[i].kind == DeviceKind::port) {
      host.add_port(rails.ports.size());
      rails.ports.push_back({i});
    } else {
      if (!machine.is_part(devices[i])) host.add_gpu(rails.gpus.size());
      rails.gpus.push_back({i});
    }
  }
  for (auto& [number, host] : hosts) host.match();
  share_with_partitions(machine, rails);
  for (Rails::Port& port : rails.ports)
    if (const auto& told = devices[port.device].rail)
      port.rail = static_cast<uint32_t>(told->value);
  return rails;
}

Rails match_rails(const Machine& machine) {
  return match_rails(machine, Paths(machine, Paths::View::physical));
}

}  // namespace crosstie
