// SPDX-License-Identifier: Apache-2.0
// The memory that a Worker's owner has registered. Any thread may add and look up; the Worker's
// own removes, so that what that one has found stays while it uses it.
#pragma once
#include <map>
#include <mutex>

#include "transport/endpoint.h"

namespace crosstie {

struct Region {
  MemoryView memory;
  Access access = Access::local;
};

// The stretch [from, from + bytes) of a region, or why there is none.
inline Result<std::span<std::byte>> stretch(std::span<std::byte> region, uint64_t from,
                                            uint64_t bytes) {
  if (from > region.size() || bytes > region.size() - from)
    return fail(Code::invalid, "{} bytes at offset {} are outside the region's {}", bytes, from,
                region.size());
  return region.subspan(from, bytes);
}

class Regions {
 public:
  RegionId add(const MemoryView& memory, Access access) {
    const std::lock_guard lock(mutex_);
    const auto id = static_cast<RegionId>(++last_);
    regions_.emplace(id, Region{memory, access});
    return id;
  }
  void remove(RegionId id) {
    const std::lock_guard lock(mutex_);
    regions_.erase(id);
  }
  const Region* find(RegionId id) const {
    const std::lock_guard lock(mutex_);
    const auto it = regions_.find(id);
    return it == regions_.end() ? nullptr : &it->second;
  }
  // Any thread may ask; the region may be gone by the time of the answer.
  bool is_remote(RegionId id) const {
    const std::lock_guard lock(mutex_);
    const auto it = regions_.find(id);
    return it != regions_.end() && it->second.access == Access::remote;
  }
  // The last that was registered.
  RegionId last() const {
    const std::lock_guard lock(mutex_);
    return static_cast<RegionId>(last_);
  }
  // Those registered as `remote` after `last`, ascending.
  std::vector<RegionId> remote_after(RegionId last) const {
    const std::lock_guard lock(mutex_);
    std::vector<RegionId> ids;
    for (auto it = regions_.upper_bound(last); it != regions_.end(); ++it)
      if (it->second.access == Access::remote) ids.push_back(it->first);
    return ids;
  }

  Result<std::span<std::byte>> source(const Source& source) const {
    const Region* region = find(source.region);
    if (!region)
      return fail(Code::invalid, "the source's region {} is not registered",
                  static_cast<uint64_t>(source.region));
    return stretch(region->memory.bytes, source.from, source.bytes);
  }
  // Where a peer's put goes.
  Result<std::span<std::byte>> target(RegionId id, uint64_t to, uint64_t bytes) const {
    const Region* region = find(id);
    if (!region || region->access != Access::remote)
      return fail(Code::peer, "a put names region {}, which is not open to peers",
                  static_cast<uint64_t>(id));
    return stretch(region->memory.bytes, to, bytes);
  }

 private:
  mutable std::mutex mutex_;
  std::map<RegionId, Region> regions_;
  uint64_t last_ = 0;
};

}  // namespace crosstie
