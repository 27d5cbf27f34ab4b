// SPDX-License-Identifier: Apache-2.0
#include "driver/verbs.h"

#include <cstddef>
#include <cstring>

namespace crosstie {

Result<Driver<Verbs>> open_verbs() {
  auto library = open_library("libibverbs.so.1");
  if (!library) return pass(library);
  Verbs v;
  const Status found = find(*library, "ibv_get_device_list", v.get_device_list)()
                           .and_then(find(*library, "ibv_free_device_list", v.free_device_list))
                           .and_then(find(*library, "ibv_get_device_name", v.get_device_name))
                           .and_then(find(*library, "ibv_open_device", v.open_device))
                           .and_then(find(*library, "ibv_close_device", v.close_device))
                           .and_then(find(*library, "ibv_query_device", v.query_device))
                           .and_then(find(*library, "ibv_query_port", v.query_port_old))
                           .and_then(find(*library, "ibv_query_gid", v.query_gid));
  if (!found) return pass(found, "libibverbs.so.1");
  return Driver<Verbs>{v, "1", std::move(*library)};
}

// Eight bits hold no rate beyond NDR; where the wider field is set, it is meant.
uint32_t PortAttributes::active_speed() const {
  constexpr size_t kExtendedAt = 52;  // behind port_cap_flags2, aligned
  static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);
  uint32_t extended = 0;
  std::memcpy(&extended, reinterpret_cast<const std::byte*>(this) + kExtendedAt, sizeof extended);
  return extended != 0 ? extended : basic.active_speed;
}

int query_port(const Verbs& verbs, ibv_context* context, uint8_t port, PortAttributes& attributes) {
  attributes = {};
  verbs_context* const extended = verbs_get_ctx_op(context, query_port);
  if (extended != nullptr)
    return extended->query_port(context, port, &attributes.basic, sizeof attributes);
  return verbs.query_port_old(context, port,
                              reinterpret_cast<_compat_ibv_port_attr*>(&attributes.basic));
}

}  // namespace crosstie
