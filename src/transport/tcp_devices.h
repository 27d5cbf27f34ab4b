// SPDX-License-Identifier: Apache-2.0
// The host's network interfaces, as far as TCP can use them.
#pragma once
#include <vector>

#include "transport/endpoint.h"
#include "transport/wire/handshake.h"

namespace crosstie {

// Which interfaces NCCL_SOCKET_IFNAME's grammar allows: "eth,ib" names that begin so, "=eth0"
// these names, "^docker" and "^=eth0" all but those. Empty allows all.
class InterfaceFilter {
 public:
  explicit InterfaceFilter(std::string_view text);
  bool allows(std::string_view name) const;

 private:
  bool excludes_ = false, exact_ = false;
  std::vector<std::string> names_;
};

struct TcpDevice {
  Device device;
  wire::TcpAddress address;  // without a port
};

// One for each address of each interface that is up, in the kernel's order, but virtual bridges
// (docker) after the others and loopback last. Link-local addresses mean nothing on other hosts
// and are left out. Fails where `interfaces` leaves none, and names those that there are.
Result<std::vector<TcpDevice>> tcp_devices(std::string_view interfaces);

}  // namespace crosstie
