// SPDX-License-Identifier: Apache-2.0
// The transports' variables.
#pragma once
#include <array>
#include <bit>
#include <chrono>

#include "base/options.h"

namespace crosstie {

struct TransportOptions {
  int queue_depth = 0;
  std::chrono::nanoseconds handshake_timeout{};
  std::chrono::nanoseconds tcp_timeout{};
  int shm_ring = 0;
  std::string interfaces;
  int traffic_class = -1;
};

// A queue of 256 keeps sendmsg(2) in full batches. The ring's 1024 entries (16 KiB) fit beside
// the data in a first-level cache. 30 s is also the silence after which a process counts as
// dead, and a live one's library thread always drains its connections.
inline constexpr std::array kTransportRows = {
    row<&TransportOptions::queue_depth>(
        "CROSSTIE_QUEUE_DEPTH", "", "256",
        "puts and messages that may be pending on one connection, 1 to 65536"),
    row<&TransportOptions::handshake_timeout>(
        "CROSSTIE_HANDSHAKE_TIMEOUT", "", "10s",
        "how long a peer may take to answer a new connection, or to identify itself on one"),
    row<&TransportOptions::tcp_timeout>(
        "CROSSTIE_TCP_TIMEOUT", "", "30s",
        "how long data sent over TCP may stay unacknowledged before the connection has failed"),
    row<&TransportOptions::shm_ring>(
        "CROSSTIE_SHM_RING", "", "1024",
        "entries of the ring between two processes of a host, a power of two, 64 to 65536"),
    row<&TransportOptions::interfaces>(
        "CROSSTIE_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "",
        "network interfaces to use: prefixes of names, as eth,ib; with = before them whole names, "
        "with ^ all but these"),
    row<&TransportOptions::traffic_class>(
        "CROSSTIE_TC", "NCCL_IB_TC", "-1",
        "traffic class that marks packets to other hosts (DSCP in its upper six bits), 0 to 255; "
        "-1: the system's"),
};

// Whether the numbers are within what the rows say.
inline Status check(const TransportOptions& options) {
  if (options.queue_depth < 1 || options.queue_depth > 65536)
    return fail(Code::invalid, "CROSSTIE_QUEUE_DEPTH: {} is not from 1 to 65536",
                options.queue_depth);
  if (options.shm_ring < 64 || options.shm_ring > 65536 ||
      !std::has_single_bit(static_cast<unsigned>(options.shm_ring)))
    return fail(Code::invalid, "CROSSTIE_SHM_RING: {} is not a power of two from 64 to 65536",
                options.shm_ring);
  if (options.traffic_class < -1 || options.traffic_class > 255)
    return fail(Code::invalid, "CROSSTIE_TC: {} is not from -1 to 255", options.traffic_class);
  return {};
}

}  // namespace crosstie
