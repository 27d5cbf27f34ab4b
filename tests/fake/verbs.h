// SPDX-License-Identifier: Apache-2.0
// A libibverbs of two single-port NDR devices, mlx5_0 and mlx5_1, with one GUID for all of the
// host as some drivers report it; a test changes what it will.
#pragma once
#include <endian.h>

#include "driver/verbs.h"

namespace crosstie::fake {

inline ibv_device rdma_devices[2] = {};
inline ibv_device* rdma_list[3] = {&rdma_devices[0], &rdma_devices[1], nullptr};
inline int rdma_open = 0;  // contexts that are not closed yet

inline Verbs verbs() {
  Verbs v;
  v.get_device_list = [](int* count) { return *count = 2, rdma_list; };
  v.free_device_list = [](ibv_device**) {};
  v.get_device_name = [](ibv_device* device) {
    return device == &rdma_devices[0] ? "mlx5_0" : "mlx5_1";
  };
  v.open_device = [](ibv_device* device) {
    rdma_open++;
    auto* const context = new ibv_context();  // not of the extended kind
    context->device = device;
    return context;
  };
  v.close_device = [](ibv_context* context) {
    rdma_open--;
    delete context;
    return 0;
  };
  v.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    attributes->phys_port_cnt = 1;
    attributes->node_guid = htobe64(0xa088c20300ab0000u);
    attributes->sys_image_guid = htobe64(0xa088c20300ab0010u);
    return 0;
  };
  v.query_port_old = [](ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
    port->state = IBV_PORT_ACTIVE;
    port->active_speed = 128;  // NDR
    port->active_width = 2;    // 4x
    port->active_mtu = IBV_MTU_4096;
    port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    port->lid = 7;
    port->gid_tbl_len = 1;
    return 0;
  };
  v.query_gid = [](ibv_context*, uint8_t, int, ibv_gid* gid) {
    gid->global.subnet_prefix = htobe64(0xfe80000000000000u);
    gid->global.interface_id = htobe64(0xa088c20300ab12cdu);
    return 0;
  };
  return v;
}

}  // namespace crosstie::fake
