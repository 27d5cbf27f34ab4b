// SPDX-License-Identifier: Apache-2.0
// Memory that is open to the peers: each is told of it, by descriptor, before it can put there.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "transport/shm_worker.h"

namespace crosstie {

using State = ShmLink::State;
using wire::Packet;

Result<RegionId> ShmWorker::register_memory(const MemoryView& memory, Access access) {
  if (access == Access::remote) {
    struct stat status = {};
    const int seals = fcntl(memory.fd, F_GET_SEALS);
    if (memory.fd < 0 || seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memory.fd, &status) != 0)
      return fail(Code::unsupported,
                  "peers of this host can only put into a shared buffer, not into plain memory");
    if (memory.fd_offset + memory.bytes.size() > static_cast<size_t>(status.st_size))
      return fail(Code::invalid, "the region reaches beyond its shared buffer");
  }
  const RegionId id = regions_.add(memory, access);
  if (access == Access::remote) {
    untold_ = true;  // the Worker's own thread tells
    eventfd_write(bell_.get(), 1);
  }
  return id;
}

Posted ShmWorker::deregister(RegionId id) {
  const Region* region = regions_.find(id);
  if (!region) return Posted::ok;
  const bool remote = region->access == Access::remote;
  tell_new_regions();
  if (remote && leaving_.insert(id).second)
    for (auto& [endpoint, link] : links_)
      if (link.state == State::ready) tell_gone(link, id);
  for (const auto& [endpoint, link] : links_)
    if (link.mapped() && link.being_written() == static_cast<uint64_t>(id)) return retry_.refuse();
  leaving_.erase(id);
  regions_.remove(id);
  return Posted::ok;
}

void ShmWorker::tell_new_regions() {
  if (!untold_.exchange(false)) return;
  for (auto& [endpoint, link] : links_)
    if (link.state == State::ready) tell_new_regions(link);
}

void ShmWorker::tell_new_regions(ShmLink& link) {
  for (const RegionId id : regions_.remote_after(link.last_told)) {
    if (!leaving_.contains(id)) tell_region(link, id);
    link.last_told = id;
  }
}

void ShmWorker::tell_gone(ShmLink& link, RegionId id) {
  Packet packet;
  packet.kind = Packet::Kind::forget;
  packet.region = static_cast<uint64_t>(id);
  link.announce_deregistration();
  tell(link, packet);
}

void ShmWorker::tell_region(ShmLink& link, RegionId id) {
  const Region& region = *regions_.find(id);
  Packet packet;
  packet.kind = Packet::Kind::region;
  packet.region = static_cast<uint64_t>(id);
  packet.offset = region.memory.fd_offset;
  packet.bytes = region.memory.bytes.size();
  tell(link, packet);
}

void ShmWorker::tell(ShmLink& link, const Packet& packet) {
  link.packets.push_back(packet);
  if (link.packets.size() == 1) tell_waiting(link);
}

// An error is left to the socket's reader, which also finds what the peer had to say.
void ShmWorker::tell_waiting(ShmLink& link) {
  while (!link.packets.empty()) {
    const auto sent = send(link, link.packets.front());
    if (sent && *sent == Sent::again)
      return poller_.set_alarm(tag_of(link.id), Clock::now() + kRetry);
    link.packets.pop_front();
  }
}

Result<Sent> ShmWorker::send(ShmLink& link, const Packet& packet) {
  int descriptor = -1;
  if (packet.kind == Packet::Kind::welcome) descriptor = bell_.get();
  if (packet.kind == Packet::Kind::region) {
    // By now it may be gone; then its memory may be, too, and the peer need not know of it.
    const Region* region = regions_.find(static_cast<RegionId>(packet.region));
    if (!region) return Sent::ok;
    descriptor = region->memory.fd;
  }
  return send_packet(link.socket.get(), packet, std::span(&descriptor, descriptor < 0 ? 0 : 1));
}

}  // namespace crosstie
