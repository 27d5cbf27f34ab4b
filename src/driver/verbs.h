// SPDX-License-Identifier: Apache-2.0
// libibverbs as a table of functions.
#pragma once
#include <infiniband/verbs.h>

#include "driver/library.h"

namespace crosstie {

struct Verbs {
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device** list) = nullptr;
  const char* (*get_device_name)(ibv_device* device) = nullptr;
  ibv_context* (*open_device)(ibv_device* device) = nullptr;
  int (*close_device)(ibv_context* context) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes) = nullptr;
  // The exported symbol knows the first part of the attributes only; call query_port() below.
  int (*query_port_old)(ibv_context* context, uint8_t port,
                        _compat_ibv_port_attr* attributes) = nullptr;
  int (*query_gid)(ibv_context* context, uint8_t port, int index, ibv_gid* gid) = nullptr;
};

Result<Driver<Verbs>> open_verbs();

// ibv_port_attr, and room for the active_speed_ex (rates beyond NDR) that newer headers have behind
// it.
struct PortAttributes {
  ibv_port_attr basic;
  uint32_t room[2];

  uint32_t active_speed() const;  // an encoded rate a lane
};

// What the header's inline ibv_query_port does, without linking to the library: through the
// provider's own entry where the context has one. Returns 0 or an errno value.
int query_port(const Verbs& verbs, ibv_context* context, uint8_t port, PortAttributes& attributes);

}  // namespace crosstie
