// SPDX-License-Identifier: Apache-2.0
#include "mem.h"
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>
#include "rig.h"

// Static variables with destructors are never destroyed here: detached stream threads may
// still use them while the process exits.
namespace rig {
namespace {
constexpr size_t kPage = 4096;

std::mutex mutex;
std::map<uintptr_t, Map>& maps() {
  static auto* m = new std::map<uintptr_t, Map>;
  return *m;
}
thread_local int device;
uint64_t allocations;

// Every allocation holds a file descriptor.
void raise_fd_limit() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string>* make_bus_ids() {
  auto* ids = new std::vector<std::string>;
  const char* given = getenv("NCCLRIG_BUSIDS");
  std::string list = given ? given : "";
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) ids->push_back(list.substr(at, end - at));
    at = end + 1;
  }
  const int n = env_int("NCCLRIG_NDEV", ids->empty() ? 1 : (int)ids->size());
  for (int d = (int)ids->size(); d < n; d++) {
    char id[32];
    snprintf(id, sizeof id, "0000:%02x:00.0", 0x10 + d);
    ids->push_back(id);
  }
  ids->resize(n);
  raise_fd_limit();
  return ids;
}
const std::vector<std::string>& bus_ids() {
  static auto* ids = make_bus_ids();
  return *ids;
}

int bus_id_part(int dev, int part) {
  unsigned v[3] = {};
  sscanf(busid(dev), "%x:%x:%x", &v[0], &v[1], &v[2]);
  return (int)v[part];
}
}  // namespace

int ndev() { return (int)bus_ids().size(); }
const char* busid(int d) { return d >= 0 && d < ndev() ? bus_ids()[d].c_str() : ""; }
int current_device() { return device; }
void set_device(int d) { device = d; }
size_t device_bytes() { return (size_t)env_int("NCCLRIG_MEM_GB", 80) << 30; }
uint64_t allocation_count() { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }

int attribute(int which, int dev) {
  static const int cc = env_int("NCCLRIG_CC", 90), sms = env_int("NCCLRIG_SMS", 132);
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return cc / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return cc % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return sms;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return cc >= 90 ? 232448 : 166912;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 233472;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1980000;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return bus_id_part(dev, 0);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return bus_id_part(dev, 1);
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
      return CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      return env_int("NCCLRIG_VMM", 1);
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
      return env_int("NCCLRIG_FABRIC", 0);
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      return env_int("NCCLRIG_MULTICAST", cc >= 90);
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return env_int("NCCLRIG_DMABUF", 0);
    default:
      return 0;  // among them the NUMA node
  }
}

// ---- physical allocations -----------------------------------------------------------
Phys* phys_new(size_t size, int dev, bool host, bool vmm) {
  const int fd = memfd_create(host ? "rig-host" : "rig-device", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  const size_t bytes = size ? (size + kPage - 1) & ~(kPage - 1) : kPage;
  if (ftruncate(fd, (off_t)bytes)) {
    close(fd);
    return nullptr;
  }
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return new Phys{.fd = fd, .dev = dev, .size = bytes, .host = host, .vmm = vmm};
}

Phys* phys_from_fd(int fd, int dev, bool vmm) {
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) return nullptr;
  return new Phys{.fd = fd, .dev = dev, .size = (size_t)st.st_size, .vmm = vmm};
}

Phys* phys_from_peer(int pid, int fd, int dev, bool vmm) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
  return phys_from_fd(open(path, O_RDWR | O_CLOEXEC), dev, vmm);
}

void phys_ref(Phys* p) { __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED); }

void phys_unref(Phys* p) {
  if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  close(p->fd);
  delete p;
}

// ---- mappings -----------------------------------------------------------------------
void* map_phys(Phys* p, void* at, size_t size, size_t offset, Kind kind, bool vmm) {
  const int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
  void* r = mmap(at, size, PROT_READ | PROT_WRITE, flags, p->fd, (off_t)offset);
  if (r == MAP_FAILED) return nullptr;
  phys_ref(p);
  std::lock_guard<std::mutex> lock(mutex);
  maps()[(uintptr_t)r] = Map{(uintptr_t)r, size, p, kind, vmm};
  return r;
}

static bool take(void* p, Map* out) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = maps().find((uintptr_t)p);
  if (it == maps().end()) return false;
  *out = it->second;
  maps().erase(it);
  return true;
}

bool unmap(void* p, bool keep_reserved) {
  Map m;
  if (!take(p, &m)) return false;
  if (m.kind == Kind::Registered) return true;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const bool ok =
      keep_reserved ? mmap(p, m.size, PROT_NONE, flags, -1, 0) != MAP_FAILED : !munmap(p, m.size);
  phys_unref(m.phys);
  return ok;
}

bool find(const void* p, Map* out) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = maps().upper_bound((uintptr_t)p);
  if (it == maps().begin()) return false;
  --it;
  if ((uintptr_t)p >= it->first + it->second.size) return false;
  if (out) *out = it->second;
  return true;
}

void add_registered(void* p, size_t n) {
  std::lock_guard<std::mutex> lock(mutex);
  maps()[(uintptr_t)p] = Map{(uintptr_t)p, n, nullptr, Kind::Registered, false};
}

// NCCL zeroes large buffers that are then hardly used. Punching holes instead keeps a run
// of many ranks small: untouched pages cost nothing.
static bool punch(char* p, size_t n) {
  Map m;
  char* low = (char*)(((uintptr_t)p + kPage - 1) & ~(kPage - 1));
  char* high = (char*)((uintptr_t)(p + n) & ~(kPage - 1));
  if (high <= low || !find(p, &m) || !m.phys || (uintptr_t)p + n > m.at + m.size) return false;
  if (madvise(low, high - low, MADV_REMOVE)) return false;
  memset(p, 0, low - p);
  memset(high, 0, p + n - high);
  return true;
}

void fill(void* p, int value, size_t n) {
  if (value != 0 || n < 16 * kPage || !punch((char*)p, n)) memset(p, value, n);
}
}  // namespace rig
