// SPDX-License-Identifier: Apache-2.0
// NCCL topology files for emulated nodes.
#pragma once
#include <string>

// A node like a DGX H100: two sockets, for each GPU a PCIe switch, and 18 NVLinks per GPU to
// NVSwitches. One 400G NIC, beside GPU 0, under the name of the loopback device: NCCL's socket
// transport finds its device there, and takes speed and place from the file.
std::string make_topology(int gpus);

// Their PCI bus ids, comma-separated.
std::string gpu_bus_ids(int gpus);
