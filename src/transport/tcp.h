// SPDX-License-Identifier: Apache-2.0
// The endpoint primitive over TCP, for peers on any host.
#pragma once
#include "base/log.h"
#include "transport/endpoint.h"
#include "transport/options.h"

namespace crosstie {

// Its devices are the addresses of the interfaces that CROSSTIE_SOCKET_IFNAME allows.
Result<std::unique_ptr<Worker>> make_tcp_worker(const TransportOptions& options, const Log& log);

}  // namespace crosstie
