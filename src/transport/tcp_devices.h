// SPDX-License-Identifier: Apache-2.0
// The host's network interfaces, as far as TCP can use them.
#pragma once
#include <vector>

#include "transport/endpoint.h"
#include "transport/wire/handshake.h"

namespace crosstie {

struct TcpDevice {
  Device device;
  wire::TcpAddress address;  // without a port
};

// One for each address of each interface that is up, in the kernel's order, but virtual bridges
// (docker) after the others and loopback last. Link-local addresses mean nothing on other hosts
// and are left out. Fails where `interfaces` (base/name_filter.h) leaves none, and names those that
// there are.
Result<std::vector<TcpDevice>> tcp_devices(std::string_view interfaces);

}  // namespace crosstie
