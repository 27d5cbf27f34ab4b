// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_devices.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <set>

#include "base/name_filter.h"
#include "transport/tcp_socket.h"

namespace crosstie {
namespace {

// The order in which they are wanted.
enum Rank { kOfHost, kBridge, kLoopback };

Rank rank_of(const ifaddrs& interface) {
  if (interface.ifa_flags & IFF_LOOPBACK) return kLoopback;
  return std::string_view(interface.ifa_name).starts_with("docker") ? kBridge : kOfHost;
}

bool is_usable(const ifaddrs& interface) {
  if (!interface.ifa_addr || !(interface.ifa_flags & IFF_UP)) return false;
  if (interface.ifa_addr->sa_family == AF_INET) return true;
  if (interface.ifa_addr->sa_family != AF_INET6) return false;
  const auto* six = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr);
  return !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

TcpDevice device_of(const ifaddrs& interface) {
  const wire::TcpAddress address = tcp_address(*interface.ifa_addr);
  return {{interface.ifa_name, host_text(address)}, address};
}

}  // namespace

Result<std::vector<TcpDevice>> tcp_devices(std::string_view interfaces) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return fail_errno(Code::io, "cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  const NameFilter filter(interfaces);
  std::vector<std::pair<Rank, TcpDevice>> found;
  std::set<std::string> refused;
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!is_usable(*i)) continue;
    if (filter.allows(i->ifa_name))
      found.emplace_back(rank_of(*i), device_of(*i));
    else
      refused.insert(i->ifa_name);
  }
  if (found.empty())
    return fail(
        Code::missing,
        "CROSSTIE_SOCKET_IFNAME (or NCCL_SOCKET_IFNAME) '{}' leaves no interface of {}", interfaces,
        refused.empty() ? "none with an address" : fmt::format("{}", fmt::join(refused, ", ")));
  std::ranges::stable_sort(found, {}, &std::pair<Rank, TcpDevice>::first);
  std::vector<TcpDevice> devices;
  for (auto& [rank, device] : found) devices.push_back(std::move(device));
  return devices;
}

}  // namespace crosstie
