// SPDX-License-Identifier: Apache-2.0
// What a peer must know to put into a region.
#pragma once
#include "transport/regions.h"
#include "transport/wire/bytes.h"

namespace crosstie::wire {

struct Key {
  static constexpr uint32_t kMagic = four_letters("XKEY");
  uint32_t magic = kMagic;
  uint32_t unused = 0;
  uint64_t worker = 0;  // nonce of the Worker that registered it
  uint64_t region = 0;
};
static_assert(sizeof(Key) <= kMaxBlob);

// Empty for a region that is not open to peers.
inline Blob key_of(const Regions& regions, RegionId id, uint64_t worker) {
  if (!regions.is_remote(id)) return {};
  Key key;
  key.region = static_cast<uint64_t>(id);
  key.worker = worker;
  return blob_of(key);
}

// The region, if the key is one of this worker's.
inline Result<RegionId> region_of(std::span<const std::byte> bytes, uint64_t worker) {
  Key key;
  if (!read(bytes, key) || key.magic != Key::kMagic)
    return fail(Code::invalid, "the key ({} bytes) is not a region's", bytes.size());
  if (key.worker != worker)
    return fail(Code::invalid, "the key names a region of another peer than the endpoint's");
  return static_cast<RegionId>(key.region);
}

}  // namespace crosstie::wire
