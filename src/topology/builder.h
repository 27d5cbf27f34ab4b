// SPDX-License-Identifier: Apache-2.0
// Makes a Machine out of sightings, from one source or several. The only place where sightings
// are merged; it does so by identity, and notes as a gap what does not fit together.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/machine.h"

namespace crosstie {

class Builder {
 public:
  Builder(std::string name, std::string source);

  // Merges the sighting with what is known of the same device, else adds it. Returns its index
  // in this Builder, which later sightings name as their parent.
  uint32_t see(Device seen);
  // More of a device that was seen.
  void merge(uint32_t index, const Device& seen);
  // Puts a device that was seen into what contains it, unless another source has.
  void adopt(uint32_t index, uint32_t parent);

  // `count` links of one end to another, as told by `from`. What both ends tell is one bundle;
  // what one end tells twice adds up. Without a bandwidth the usual one of the type is assumed.
  struct Bundle {
    LinkType type = LinkType::nvlink;
    uint32_t count = 1;
    Property<Bandwidth> bandwidth{};  // of the whole bundle
  };
  void link(uint32_t from, uint32_t to, const Bundle& bundle);
  bool has_link(uint32_t a, uint32_t b, LinkType type) const {
    return links_.contains(Ends{a, b, type}) || links_.contains(Ends{b, a, type});
  }
  // To a device that may be seen later only. If it never is: an NVSwitch is taken as seen
  // (containers and VMs hide them), any other leaves a gap.
  void link_to_address(uint32_t from, const Bdf& to, DeviceKind kind, const Bundle& bundle);

  // What NCCL takes for true, as in Machine::Parts::nccl_links. False: that was told before, and
  // the first counts.
  bool nccl_takes(const Link& link);

  // Between these GPUs the driver refuses peer-to-peer access; told again, the first counts.
  void refuse(uint32_t a, uint32_t b, std::string why);

  void gap(uint32_t device, std::string missing, std::string assumed = {},
           GapAbout about = GapAbout::other);
  void gap(std::string device, std::string missing, std::string assumed = {},
           GapAbout about = GapAbout::other);

  // The NVSwitches are outside the host and serve so many hosts like it.
  void share_nvswitches(uint32_t hosts) { parts_.hosts_in_domain = hosts; }

  const Device& device(uint32_t index) const { return devices_[index]; }
  uint32_t size() const { return static_cast<uint32_t>(devices_.size()); }
  // The NUMA node of that number, or kNoDevice.
  uint32_t numa(uint32_t number) const;

  // Fills in what no source told, with a gap for each, and checks the outcome.
  Result<Machine> build() &&;

 private:
  struct OpenLink {
    uint32_t from;
    Bdf to;
    DeviceKind kind;
    Bundle bundle;
  };
  struct OpenGap {
    uint32_t device;
    Gap gap;
  };
  using Ends = std::tuple<uint32_t, uint32_t, LinkType>;

  uint32_t recognise(const std::vector<std::string>& keys, const Device& seen) const;
  bool is_within(uint32_t device, uint32_t ancestor) const;

  // builder_finish.cc
  void resolve_open_links();
  uint32_t end_of(const OpenLink& open);
  void adopt_orphans();
  bool has_pcie_link(const Device& device) const;
  void assume_properties();
  void assume_pcie(uint32_t index);
  void assume_gpu_kinds();
  void forget_pcie(uint32_t index);
  void link_parents();
  void link_numa_nodes();
  Bundle bundle_to_parent(const Device& device) const;
  std::pair<uint32_t, Property<Bandwidth>> bundle_between(const Ends& ends, const Bundle& bundle);
  Property<Bandwidth> nvlink_rate(uint32_t a, uint32_t b);
  Property<Bandwidth> xgmi_rate(uint32_t a, uint32_t b);
  std::vector<Link> merge_link_ends();
  std::vector<uint32_t> depth_first() const;
  void put_in_order(const std::vector<uint32_t>& order);
  void give_labels(const std::vector<uint32_t>& order);
  std::vector<Gap> close_gaps();

  // builder_doubts.cc
  struct Beneath {
    double speed = 0;
    Bandwidth widest{};
  };
  void doubt_line_rates();
  void doubt_pcie_speeds(const std::vector<Link>& links);
  void doubt_bridges(std::vector<Link>& links);
  std::vector<Beneath> beneath_bridges() const;
  void doubt_nvlinks(std::vector<Link>& links);
  bool is_direct(const Link& link) const;
  std::vector<bool> crowded_gpus(const std::vector<Link>& links);
  void put_switch_between(const std::vector<bool>& gpus, std::vector<Link>& links);

  Machine::Parts parts_;
  std::vector<Device> devices_;
  std::unordered_map<std::string, uint32_t> by_key_;
  std::map<Ends, Bundle> links_;  // from, to, type
  std::set<Ends> nccl_told_;
  std::vector<OpenLink> open_links_;
  std::vector<OpenGap> gaps_;
};

}  // namespace crosstie
