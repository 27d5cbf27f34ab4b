// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1: as much of NVML as NCCL asks for. Its structures are declared here, as
// documented by NVML, because toolkits do not always come with nvml.h.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "rig.h"

namespace {
using R = int;  // nvmlReturn_t
enum Status { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum FieldId {
  SPEED_COMMON = 90,
  LINK_COUNT = 91,
  LINK_SPEED = 164,
  LINK_STATE = 165,
  C2C_COUNT = 170
};
constexpr unsigned kLinkMbps = 26562, kUnsignedInt = 1, kFabricComplete = 3;

struct Pci {  // what the versions have in common
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
};
struct PciV3 : Pci {
  char id[32];
};
struct Field {
  unsigned id, scope;
  long long timestamp, latency;
  int type, status;
  union {
    unsigned u;
    unsigned long long ull;
  } value;
};
struct FabricInfo {
  unsigned version;
  unsigned char uuid[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
struct ConfidentialComputing {
  unsigned version, environment, feature, device_mode, multi_gpu;
};

// A device's handle is its number plus 1.
void* handle(unsigned device) { return (void*)(uintptr_t)(device + 1); }
int number(const void* handle) { return (int)((uintptr_t)handle - 1); }

unsigned links() { return (unsigned)rig::env_int("NCCLRIG_NVLINKS", 18); }

bool parse(const char* id, unsigned at[4]) {
  return sscanf(id, "%x:%x:%x.%x", at, at + 1, at + 2, at + 3) == 4;
}

R field_value(Field& f) {
  f.type = kUnsignedInt;
  switch (f.id) {
    case LINK_COUNT:
      f.value.u = links();
      return OK;
    case SPEED_COMMON:
    case LINK_SPEED:
      f.value.u = kLinkMbps;
      return OK;
    case LINK_STATE:
      f.value.u = f.scope < links();
      return OK;
    case C2C_COUNT:
      f.value.u = 0;
      return OK;
    default:
      return NOT_SUPPORTED;
  }
}
}  // namespace

extern "C" {
R nvmlInit() { return OK; }
R nvmlInit_v2() { return OK; }
R nvmlShutdown() { return OK; }
const char* nvmlErrorString(R) { return "emulated NVML error"; }
R nvmlDeviceGetCount(unsigned* n) {
  *n = rig::ndev();
  return OK;
}
R nvmlDeviceGetCount_v2(unsigned* n) {
  *n = rig::ndev();
  return OK;
}
R nvmlDeviceGetHandleByIndex(unsigned i, void** d) {
  if ((int)i >= rig::ndev()) return INVALID;
  *d = handle(i);
  return OK;
}
R nvmlDeviceGetHandleByIndex_v2(unsigned i, void** d) { return nvmlDeviceGetHandleByIndex(i, d); }
R nvmlDeviceGetHandleByPciBusId(const char* id, void** d) {
  unsigned wanted[4], at[4];
  if (!parse(id, wanted)) return INVALID;
  for (int i = 0; i < rig::ndev(); i++)
    if (parse(rig::busid(i), at) && !memcmp(wanted, at, sizeof at)) {
      *d = handle(i);
      return OK;
    }
  return NOT_FOUND;
}
R nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** d) {
  return nvmlDeviceGetHandleByPciBusId(id, d);
}
R nvmlDeviceGetIndex(void* d, unsigned* i) {
  *i = number(d);
  return OK;
}
R nvmlDeviceGetCudaComputeCapability(void*, int* M, int* m) {
  int cc = rig::env_int("NCCLRIG_CC", 90);
  *M = cc / 10;
  *m = cc % 10;
  return OK;
}
R nvmlDeviceGetP2PStatus(void*, void*, int, int* s) {
  *s = rig::env_int("NCCLRIG_P2P", 1) ? 0 : 5;
  return OK;
}
R nvmlDeviceGetNvLinkState(void*, unsigned l, int* on) {
  if (l >= links()) return NOT_SUPPORTED;
  *on = 1;
  return OK;
}
R nvmlDeviceGetNvLinkCapability(void*, unsigned l, int c, unsigned* r) {
  if (l >= links()) return NOT_SUPPORTED;
  *r = c == 0;
  return OK;
}
R nvmlDeviceGetNvLinkRemotePciInfo(void*, unsigned l, Pci* p) {  // every link ends at an NVSwitch
  if (l >= links()) return NOT_SUPPORTED;
  memset(p, 0, sizeof *p);
  p->bus = 0xf0 + l % 4;
  snprintf(p->legacy_id, sizeof p->legacy_id, "0000:%02x:00.0", p->bus);
  return OK;
}
R nvmlDeviceGetFieldValues(void*, int n, Field* f) {
  for (int i = 0; i < n; i++) f[i].status = field_value(f[i]);
  return OK;
}
R nvmlDeviceGetGpuFabricInfoV(void*, FabricInfo* f) {
  const char* u = getenv("NCCLRIG_FABRIC_UUID");
  if (!u || !*u) return NOT_SUPPORTED;
  memset(f->uuid, 0, 16);
  memcpy(f->uuid, u, strnlen(u, 16));
  f->status = OK;
  f->clique = rig::env_int("NCCLRIG_FABRIC_CLIQUE", 1);
  f->state = kFabricComplete;
  f->health = 0;
  return OK;
}
R nvmlDeviceGetPciInfo_v3(void* d, PciV3* p) {
  unsigned at[4] = {};
  parse(rig::busid(number(d)), at);
  memset(p, 0, sizeof *p);
  p->domain = at[0];
  p->bus = at[1];
  p->device = at[2];
  p->device_id = 0x233010de;
  snprintf(p->legacy_id, sizeof p->legacy_id, "%04x:%02x:%02x.0", at[0] & 0xffff, at[1] & 0xff,
           at[2] & 0xff);
  snprintf(p->id, sizeof p->id, "%08x:%02x:%02x.0", at[0], at[1] & 0xff, at[2] & 0xff);
  return OK;
}
R nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* g) {
  *g = 5;
  return OK;
}
R nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* w) {
  *w = 16;
  return OK;
}
R nvmlDeviceGetPcieLinkMaxSpeed(void*, unsigned* s) {
  *s = 32000;
  return OK;
}
R nvmlDeviceGetPlatformInfo(void*, void*) { return NOT_SUPPORTED; }
R nvmlSystemGetConfComputeSettings(ConfidentialComputing* c) {
  unsigned v = c->version;
  memset(c, 0, sizeof *c);
  c->version = v;
  return OK;
}
}
