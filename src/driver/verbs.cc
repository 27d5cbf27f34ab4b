// SPDX-License-Identifier: Apache-2.0
#include "driver/verbs.h"

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

int query_port(const Verbs& verbs, ibv_context* context, uint8_t port, ibv_port_attr& attributes) {
  attributes = {};
  verbs_context* const extended = verbs_get_ctx_op(context, query_port);
  if (extended != nullptr)
    return extended->query_port(context, port, &attributes, sizeof attributes);
  return verbs.query_port_old(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
}

}  // namespace crosstie
