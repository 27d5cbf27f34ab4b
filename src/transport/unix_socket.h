// SPDX-License-Identifier: Apache-2.0
// Unix-domain sockets that keep packets whole and pass descriptors. Their names are abstract:
// nothing is left in the file system.
#pragma once
#include <sys/types.h>

#include <vector>

#include "base/handle.h"
#include "transport/wire/packet.h"

namespace crosstie {

Result<Fd> listen_unix(std::span<const uint8_t> name);
// Unset where the listener's backlog is full: try again later.
Result<Fd> dial_unix(std::span<const uint8_t> name);
// Who made the other end of a connection.
struct PeerProcess {
  pid_t pid = 0;  // in our namespace; 0 where it is not seen from there
  uid_t user = 0;
};
Result<PeerProcess> peer_process(int fd);

enum class Sent { ok, again };
Result<Sent> send_packet(int fd, const wire::Packet& packet, std::span<const int> descriptors);

struct Received {
  enum class What { packet, nothing, ended } what = What::nothing;
  wire::Packet packet;
  std::vector<Fd> descriptors;
};
// Fails for anything that is no packet of ours.
Result<Received> receive_packet(int fd);

}  // namespace crosstie
