// SPDX-License-Identifier: Apache-2.0
// NVML (libnvidia-ml.so.1) as a table of functions. Its header comes with the CUDA toolkit,
// which is not needed to build, so the few declarations in use are stated here; they are part
// of NVML's stable ABI (the _v2 and _v3 entries never change).
#pragma once
#include "driver/library.h"

namespace crosstie {

struct NvmlDeviceObject;
using NvmlDevice = NvmlDeviceObject*;
enum NvmlReturn : int { kNvmlSuccess = 0 };  // all others: it failed
enum NvmlEnable : int { kNvmlDisabled = 0, kNvmlEnabled = 1 };

// nvmlPciInfo_t as of the _v3 entry.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfo) == 68);

// nvmlIntNvLinkDeviceType_t: what is at an NVLink's other end.
enum NvmlRemote : int {
  kNvmlRemoteGpu = 0,
  kNvmlRemoteNpu = 1,  // the CPU, on IBM's POWER
  kNvmlRemoteSwitch = 2,
  kNvmlRemoteUnknown = 255,
};

// nvmlNvLinkCapability_t.
enum NvmlLinkCapability : int { kNvmlLinkP2p = 0 };

enum NvmlP2pIndex : int { kNvmlP2pRead = 0, kNvmlP2pWrite = 1 };
// nvmlGpuP2PStatus_t.
enum NvmlP2pStatus : int {
  kNvmlP2pOk = 0,
  kNvmlP2pChipset,
  kNvmlP2pGpu,
  kNvmlP2pIoh,
  kNvmlP2pRegistry,
  kNvmlP2pNotSupported,
  kNvmlP2pUnknown,
};

// nvmlFieldValue_t.
struct NvmlFieldValue {
  unsigned field;
  unsigned scope;  // here a link
  long long timestamp, latency;
  int type;
  NvmlReturn result;
  union {
    unsigned number;
    unsigned long long long_number;
  } value;
};
static_assert(sizeof(NvmlFieldValue) == 40);
enum NvmlField : unsigned {
  kNvmlNvlinkState = 165,  // NvmlEnable
  kNvmlC2cLinkCount = 170,
  kNvmlC2cLinkStatus = 171,  // 1: active
  kNvmlC2cLinkRate = 172,    // MB/s
};

// nvmlGpuFabricInfo_v2_t.
struct NvmlFabricInfo {
  unsigned version;
  unsigned char cluster[16];
  NvmlReturn status;  // of the registration, once it is completed
  unsigned clique;
  unsigned char state;
  unsigned health;  // four fields of two bits, each 0 not told, 1 ill, 2 well; then one of four
                    // bits: what is set up wrongly, 0 not told, 1 nothing
};
static_assert(sizeof(NvmlFabricInfo) == 36);
inline constexpr unsigned kNvmlFabricInfoVersion = sizeof(NvmlFabricInfo) | 2 << 24;
enum NvmlFabricState : unsigned char {
  kNvmlFabricNone = 0,
  kNvmlFabricNotStarted,
  kNvmlFabricInProgress,
  kNvmlFabricCompleted,
};

inline constexpr unsigned kNvmlMostLinks = 36;  // NVML_NVLINK_MAX_LINKS as of driver 570
inline constexpr unsigned kNvmlTextBytes = 96;  // the longest of name, UUID, version buffers

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  const char* (*error_string)(NvmlReturn result) = nullptr;
  NvmlReturn (*driver_version)(char* text, unsigned bytes) = nullptr;
  NvmlReturn (*device_count)(unsigned* count) = nullptr;
  NvmlReturn (*device_by_index)(unsigned index, NvmlDevice* device) = nullptr;
  NvmlReturn (*pci_info)(NvmlDevice device, NvmlPciInfo* info) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  NvmlReturn (*name)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  NvmlReturn (*compute_capability)(NvmlDevice device, int* major, int* minor) = nullptr;
  NvmlReturn (*nvlink_state)(NvmlDevice device, unsigned link, NvmlEnable* state) = nullptr;
  NvmlReturn (*nvlink_remote)(NvmlDevice device, unsigned link, NvmlPciInfo* info) = nullptr;
  NvmlReturn (*nvlink_capability)(NvmlDevice device, unsigned link, NvmlLinkCapability capability,
                                  unsigned* has) = nullptr;

  // Null where the driver is too old for them.
  NvmlReturn (*nvlink_version)(NvmlDevice device, unsigned link, unsigned* version) = nullptr;
  NvmlReturn (*nvlink_remote_type)(NvmlDevice device, unsigned link, NvmlRemote* type) = nullptr;
  NvmlReturn (*field_values)(NvmlDevice device, int count, NvmlFieldValue* values) = nullptr;
  NvmlReturn (*fabric_info)(NvmlDevice device, NvmlFabricInfo* info) = nullptr;
  NvmlReturn (*p2p_status)(NvmlDevice a, NvmlDevice b, NvmlP2pIndex index,
                           NvmlP2pStatus* status) = nullptr;
  // A mask of NUMA nodes; scope 0 is the node, 1 the socket.
  NvmlReturn (*memory_affinity)(NvmlDevice device, unsigned words, unsigned long* nodes,
                                unsigned scope) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice device, unsigned* now, unsigned* pending) = nullptr;
  NvmlReturn (*mig_count)(NvmlDevice device, unsigned* most) = nullptr;
  NvmlReturn (*mig_by_index)(NvmlDevice device, unsigned index, NvmlDevice* partition) = nullptr;
};

// Opens the library and initialises NVML, which fails where no NVIDIA driver is loaded. Neither
// is undone: other users in the process (NCCL, CUDA) may share NVML's state.
Result<Driver<Nvml>> open_nvml();

}  // namespace crosstie
