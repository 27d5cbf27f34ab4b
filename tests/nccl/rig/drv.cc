// SPDX-License-Identifier: Apache-2.0
// CUDA driver API: the subset NCCL uses, under the names it asks for (no version suffixes,
// hence the #undefs: cuda.h renames some).
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <thread>
#include <type_traits>
#include "mem.h"
#include "rig.h"
#include "stream.h"
#undef cuMemGetAddressRange
#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuStreamBatchMemOp
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuDeviceTotalMem
#undef cuDeviceGetUuid

using namespace rig;
namespace {
Phys* P(CUmemGenericAllocationHandle h) { return (Phys*)(uintptr_t)h; }
constexpr size_t kGran = 2u << 20;
constexpr uintptr_t kContext = 0x1000;  // the handle of device 0's context; others follow

// What our CUmemFabricHandle holds: fabric memory is another process's memory here.
constexpr uint32_t kFabricMagic = 0x52494746;
struct FabricHandle {
  uint32_t magic;
  int pid, fd;
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

template <class T>
bool satisfied(T x, T v, unsigned how) {
  switch (how & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return (std::make_signed_t<T>)(x - v) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return x == v;
    case CU_STREAM_WAIT_VALUE_AND:
      return (x & v) != 0;
    default:
      return (T) ~(x | v) != 0;  // CU_STREAM_WAIT_VALUE_NOR
  }
}
template <class T>
CUresult wait_value(CUstream s, CUdeviceptr at, T v, unsigned how) {
  submit((Stream*)s, Job::Blocking, [=] {
    while (!satisfied(__atomic_load_n((T*)at, __ATOMIC_ACQUIRE), v, how)) std::this_thread::yield();
  });
  return CUDA_SUCCESS;
}
template <class T>
CUresult write_value(CUstream s, CUdeviceptr at, T v) {
  submit((Stream*)s, Job::Short, [=] { __atomic_store_n((T*)at, v, __ATOMIC_SEQ_CST); });
  return CUDA_SUCCESS;
}
}  // namespace

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* v) {
  *v = env_int("NCCLRIG_DRIVER", CUDA_VERSION);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult e, const char** s) {
  thread_local char b[48];
  snprintf(b, sizeof b, "emulated driver error %d", (int)e);
  *s = b;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult e, const char** s) { return cuGetErrorString(e, s); }
CUresult cuDeviceGet(CUdevice* d, int i) {
  if (i < 0 || i >= ndev()) return CUDA_ERROR_INVALID_DEVICE;
  *d = i;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* n) {
  *n = ndev();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice d) {
  *v = attribute((int)a, d);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* s, int n, CUdevice d) {
  snprintf(s, n, "%s", busid(d));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* u, CUdevice d) {
  memset(u, 0, sizeof *u);
  snprintf(u->bytes, sizeof u->bytes, "rig%d", d);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* n, CUdevice) {
  *n = device_bytes();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* s, int n, CUdevice) {
  snprintf(s, n, "nccl-rig virtual GPU");
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* c) {
  *c = (CUcontext)(kContext + current_device());
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  if ((uintptr_t)c >= kContext) set_device((int)((uintptr_t)c - kContext));
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* d) {
  *d = current_device();
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate(CUcontext* c, void*, int, unsigned, CUdevice d) {
  *c = (CUcontext)(kContext + d);
  set_device(d);
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() {
  wait_all_streams();
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr p) {
  Map m;
  if (!find((void*)p, &m)) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = m.at;
  if (size) *size = m.size;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* out, CUpointer_attribute a, CUdeviceptr p) {
  Map m;
  if (!find((void*)p, &m)) return CUDA_ERROR_INVALID_VALUE;
  switch (a) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int*)out = m.phys ? m.phys->dev : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned*)out = m.kind == Kind::Device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *(int*)out = m.kind == Kind::Device && !m.vmm;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *(uintptr_t*)out = a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ? m.at : (uintptr_t)p;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *(size_t*)out = m.size;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *(uint64_t*)out = m.at;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(int*)out = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *(int*)out = 1;
      return CUDA_SUCCESS;
    default:
      logf(0, "cuPointerGetAttribute %d is not emulated", (int)a);
      return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr) {
  return CUDA_SUCCESS;
}

// ---- VMM ----
CUresult cuMemGetAllocationGranularity(size_t* g, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *g = kGran;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* h, size_t n, const CUmemAllocationProp* p,
                     unsigned long long) {
  bool host = p->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  auto* q = phys_new(n, host ? current_device() : p->location.id, host, true);
  *h = (uintptr_t)q;
  return q ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle h) {
  phys_unref(P(h));
  return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* h, void* p) {
  Map m;
  if (!find(p, &m) || !m.phys || !m.vmm) return CUDA_ERROR_INVALID_VALUE;
  phys_ref(m.phys);
  *h = (uintptr_t)m.phys;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* p,
                                                CUmemGenericAllocationHandle h) {
  memset(p, 0, sizeof *p);
  p->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p->location.type = P(h)->host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  p->location.id = P(h)->host ? 0 : P(h)->dev;
  p->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  p->allocFlags.gpuDirectRDMACapable = 1;
  return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle h,
                                      CUmemAllocationHandleType t, unsigned long long) {
  if (t == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    int fd = fcntl(P(h)->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
  }
  if (t == CU_MEM_HANDLE_TYPE_FABRIC) {
    memset(out, 0, sizeof(CUmemFabricHandle));
    FabricHandle w{kFabricMagic, getpid(), P(h)->fd};
    memcpy(out, &w, sizeof w);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* h, void* os,
                                        CUmemAllocationHandleType t) {
  Phys* q = nullptr;
  if (t == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    q = phys_from_fd(fcntl((int)(uintptr_t)os, F_DUPFD_CLOEXEC, 3), current_device(), true);
  } else if (t == CU_MEM_HANDLE_TYPE_FABRIC) {
    FabricHandle w;
    memcpy(&w, os, sizeof w);
    if (w.magic == kFabricMagic) q = phys_from_peer(w.pid, w.fd, current_device(), true);
  }
  if (!q) return CUDA_ERROR_INVALID_VALUE;
  *h = (uintptr_t)q;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* p, size_t n, size_t align, CUdeviceptr,
                             unsigned long long) {
  if (align < kGran) align = kGran;
  char* r = (char*)mmap(nullptr, n + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1, 0);
  if (r == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char* a = (char*)(((uintptr_t)r + align - 1) & ~(align - 1));
  if (a > r) munmap(r, a - r);
  if (a + n < r + n + align) munmap(a + n, (r + n + align) - (a + n));
  *p = (CUdeviceptr)a;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr p, size_t n) {
  munmap((void*)p, n);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr p, size_t n, size_t off, CUmemGenericAllocationHandle h,
                  unsigned long long) {
  if (off + n > ((P(h)->size + kGran - 1) & ~(kGran - 1))) return CUDA_ERROR_INVALID_VALUE;
  return map_phys(P(h), (void*)p, n, off, P(h)->host ? Kind::Host : Kind::Device, true)
             ? CUDA_SUCCESS
             : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemUnmap(CUdeviceptr p, size_t) {
  return unmap((void*)p, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}
CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr p, size_t, CUmemRangeHandleType,
                                       unsigned long long) {
  Map m;
  if (!env_int("NCCLRIG_DMABUF", 0) || !find((void*)p, &m) || !m.phys)
    return CUDA_ERROR_NOT_SUPPORTED;
  int fd = fcntl(m.phys->fd, F_DUPFD_CLOEXEC, 3);  // a memfd, not a true dma-buf
  memcpy(out, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

// ---- multicast (memory only: no reduction semantics) ----
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* h, const CUmulticastObjectProp* p) {
  auto* q = phys_new(p->size, current_device(), false, true);
  *h = (uintptr_t)q;
  return q ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice) { return CUDA_SUCCESS; }
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle,
                            size_t, size_t, unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t,
                             unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t) {
  return CUDA_SUCCESS;
}
CUresult cuMulticastGetGranularity(size_t* g, const CUmulticastObjectProp*,
                                   CUmulticastGranularity_flags) {
  *g = kGran;
  return CUDA_SUCCESS;
}

// ---- stream memory operations ----
CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned how) {
  return wait_value<uint32_t>(s, at, v, how);
}
CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned how) {
  return wait_value<uint64_t>(s, at, v, how);
}
CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned) {
  return write_value<uint32_t>(s, at, v);
}
CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned) {
  return write_value<uint64_t>(s, at, v);
}
CUresult cuStreamBatchMemOp(CUstream s, unsigned n, CUstreamBatchMemOpParams* ops, unsigned) {
  for (const auto* op = ops; op < ops + n; op++) {
    const auto& w = op->waitValue;
    const auto& x = op->writeValue;
    switch (op->operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        wait_value<uint32_t>(s, w.address, w.value, w.flags);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        wait_value<uint64_t>(s, w.address, w.value64, w.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        write_value<uint32_t>(s, x.address, x.value);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        write_value<uint64_t>(s, x.address, x.value64);
        break;
      default:
        break;  // barriers: stores above are ordered already
    }
  }
  return CUDA_SUCCESS;
}

// ---- launches ----
static CUresult launch_extra(CUfunction f, unsigned g, unsigned b, CUstream s, void** extra) {
  const void* args = nullptr;
  size_t n = 0;
  for (void** e = extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
    if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
      args = e[1];
    else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE)
      n = *(size_t*)e[1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  launch((Stream*)s, (void*)f, g, b, args, args ? n : 0);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void**, void** extra) {
  return launch_extra(f, c->gridDimX, c->blockDimX, c->hStream, extra);
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned,
                        unsigned, unsigned, CUstream s, void**, void** extra) {
  return launch_extra(f, gx, bx, s, extra);
}
}
