// SPDX-License-Identifier: Apache-2.0
// librignet.so: a net plugin (v11) whose devices exist by name only, those of $NCCLRIG_NETS, so
// that NCCL takes place and speed of each from its topology file. Nothing can be sent: for looking
// at paths and graphs of several nodes, which NCCL finds before any connection.
#include <nccl.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

enum Pointers { kHost = 1, kCuda = 2 };

struct Group {
  int count;
  int devices[4];
};

// ncclNetProperties_v11_t.
struct Properties {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers, registration_is_global, force_flush;
  int megabits_per_second, port;
  float latency;
  int most_connections, most_receives;
  int offload, offload_version;
  Group group;
  size_t most_bytes, most_collective_bytes;
  int most_requests;
};
static_assert(sizeof(Properties) == 112);

std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names;
  for (std::string rest = list ? list : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return names;
}
std::vector<std::string>& names() {
  static auto* const list = new auto(names_in(getenv("NCCLRIG_NETS")));
  return *list;
}

ncclResult_t init(void** context, uint64_t, void*, void*, void*) {
  *context = &names();
  return ncclSuccess;
}
ncclResult_t devices(int* count) {
  *count = static_cast<int>(names().size());
  return ncclSuccess;
}
ncclResult_t properties(int device, Properties* out) {
  *out = {};
  out->name = names()[static_cast<size_t>(device)].data();
  out->guid = static_cast<uint64_t>(device) + 1;
  out->pointers = kHost | kCuda;
  out->megabits_per_second = 10000;
  out->port = 1;
  out->most_connections = out->most_receives = 1;
  out->group = {1, {device}};
  out->most_bytes = out->most_collective_bytes = size_t{1} << 30;
  return ncclSuccess;
}
ncclResult_t finalize(void*) { return ncclSuccess; }

using Call = ncclResult_t (*)();
ncclResult_t refuse() { return ncclSystemError; }

}  // namespace

// ncclNet_v11_t. What connects and transfers takes other arguments than `refuse`, which looks at
// none of them.
extern "C" {
struct RigNet {
  const char* name;
  decltype(&init) init_;
  decltype(&devices) devices_;
  decltype(&properties) properties_;
  Call transfers[13];
  Call optional[3];
  decltype(&finalize) finalize_;
  Call set_attributes;
};
static_assert(sizeof(RigNet) == 176);
extern __attribute__((visibility("default"))) const RigNet ncclNetPlugin_v11;
const RigNet ncclNetPlugin_v11 = {"rig",
                                  init,
                                  devices,
                                  properties,
                                  {refuse, refuse, refuse, refuse, refuse, refuse, refuse, refuse,
                                   refuse, refuse, refuse, refuse, refuse},
                                  {},
                                  finalize,
                                  nullptr};
}
