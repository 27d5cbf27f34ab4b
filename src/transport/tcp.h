// SPDX-License-Identifier: Apache-2.0
// The endpoint primitive over TCP, for peers on any host.
#pragma once
#include "base/log.h"
#include "transport/endpoint.h"
#include "transport/options.h"

namespace crosstie {

// `address` is where this host is reached, IPv4 or IPv6 in figures; listen() binds to it.
Result<std::unique_ptr<Worker>> make_tcp_worker(const TransportOptions& options,
                                                std::string_view address, const Log& log);

}  // namespace crosstie
