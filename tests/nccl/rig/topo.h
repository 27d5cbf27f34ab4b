// SPDX-License-Identifier: Apache-2.0
// NCCL topology files for emulated nodes.
#pragma once
#include <string>
#include <vector>

// A node like a DGX H100: two sockets, for each GPU a PCIe switch, and 18 NVLinks per GPU to
// NVSwitches. One 400G NIC, beside GPU 0, under the name of the loopback device: NCCL's socket
// transport finds its device there, and takes speed and place from the file.
std::string make_topology(int gpus);

// A node's GPUs and network devices, as their PCI bus ids and names, by their numbers in the file.
struct Contents {
  std::vector<std::string> gpus, nets;
};
// Of a topology; nothing where it cannot be read.
Contents contents(const std::string& xml);
