// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API (the subset NCCL and small test programs use).
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>
#include "mem.h"
#include "rig.h"
#include "stream.h"

using namespace rig;
namespace {
thread_local cudaError_t last_err;
cudaError_t ret(cudaError_t e) {
  if (e != cudaSuccess) last_err = e;
  return e;
}
Stream* S(cudaStream_t s) { return (Stream*)s; }

// Where an event was last recorded; no stream: never.
struct Mark {
  StreamP stream;
  uint64_t job = 0;
  std::chrono::steady_clock::time_point time;

  bool passed() const { return !stream || stream_done(stream.get(), job); }
};
struct Event {
  std::mutex mutex;
  Mark last;
};
Mark mark_of(cudaEvent_t e) {
  std::lock_guard<std::mutex> lock(((Event*)e)->mutex);
  return ((Event*)e)->last;
}

// What our cudaIpcMemHandle_t holds.
constexpr uint32_t kIpcMagic = 0x52494730;
struct IpcHandle {
  uint32_t magic;
  int pid, fd, dev;
  uint64_t size;
};
static_assert(sizeof(IpcHandle) <= sizeof(cudaIpcMemHandle_t));

void* dev_alloc(size_t n, bool host) {
  Phys* p = phys_new(n, current_device(), host, false);
  if (!p) return nullptr;
  void* r = map_phys(p, nullptr, p->size, 0, host ? Kind::Host : Kind::Device, false);
  phys_unref(p);
  return r;
}
}  // namespace

extern "C" {
// ---- device ----
cudaError_t cudaGetDeviceCount(int* n) {
  *n = ndev();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
  *d = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= ndev()) return ret(cudaErrorInvalidDevice);
  set_device(d);
  return cudaSuccess;
}
cudaError_t cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  wait_all_streams();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* v, enum cudaDeviceAttr a, int d) {
  *v = attribute((int)a, d);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* s, int len, int d) {
  if (d < 0 || d >= ndev()) return ret(cudaErrorInvalidDevice);
  snprintf(s, len, "%s", busid(d));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* d, const char* id) {
  for (int i = 0; i < ndev(); i++)
    if (!strcasecmp(id, busid(i))) {
      *d = i;
      return cudaSuccess;
    }
  return ret(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) {
  *can = a != b && env_int("NCCLRIG_P2P", 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(enum cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* v, enum cudaLimit) {
  *v = 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lo, int* hi) {
  if (lo) *lo = 0;
  if (hi) *hi = -5;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) {
  if (d < 0 || d >= ndev()) return ret(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "nccl-rig virtual GPU");
  p->totalGlobalMem = device_bytes();
  p->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
  p->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
  p->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d);
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->unifiedAddressing = 1;
  p->canMapHostMemory = 1;
  p->sharedMemPerBlockOptin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d);
  p->pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, d);
  p->pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
  *v = env_int("NCCLRIG_DRIVER", CUDART_VERSION);
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
  *v = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  auto e = last_err;
  last_err = cudaSuccess;
  return e;
}
cudaError_t cudaPeekAtLastError() { return last_err; }
const char* cudaGetErrorString(cudaError_t e) {
  thread_local char b[48];
  if (e == cudaSuccess) return "no error";
  snprintf(b, sizeof b, "emulated CUDA error %d", (int)e);
  return b;
}
const char* cudaGetErrorName(cudaError_t e) { return cudaGetErrorString(e); }

// ---- memory ----
cudaError_t cudaMalloc(void** p, size_t n) {
  *p = n ? dev_alloc(n, false) : nullptr;
  return n && !*p ? ret(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  if (p) {
    wait_all_streams();
    if (!unmap(p, false)) return ret(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) {
  *p = dev_alloc(n, true);
  return *p ? cudaSuccess : ret(cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void** p, size_t n) { return cudaHostAlloc(p, n, 0); }
cudaError_t cudaMallocManaged(void** p, size_t n, unsigned) { return cudaMalloc(p, n); }
cudaError_t cudaFreeHost(void* p) {
  if (p && !unmap(p, false)) return ret(cudaErrorInvalidValue);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, size_t n, unsigned) {
  add_registered(p, n);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
  return unmap(p, false) ? cudaSuccess : ret(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void** d, void* h, unsigned) {
  *d = h;
  return cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned* f, void*) {
  *f = cudaHostAllocMapped;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) {
  *t = device_bytes();
  *f = *t / 10 * 9;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) {
  memset(a, 0, sizeof *a);
  Map m;
  a->hostPointer = a->devicePointer = (void*)p;
  if (!find(p, &m)) {
    a->type = cudaMemoryTypeUnregistered;
    a->devicePointer = nullptr;
    return cudaSuccess;
  }
  a->type = m.kind == Kind::Device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  a->device = m.phys ? m.phys->dev : 0;
  if (a->type == cudaMemoryTypeDevice) a->hostPointer = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, enum cudaMemcpyKind) {
  stream_wait(stream_ref(nullptr).get(), stream_tip(nullptr));
  memmove(d, s, n);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, enum cudaMemcpyKind,
                            cudaStream_t st) {
  // Pageable sources must be captured at call time, as the real runtime stages them.
  if (!find(s, nullptr) && n <= (1 << 20)) {
    auto c = std::make_shared<std::vector<char>>((const char*)s, (const char*)s + n);
    submit(S(st), Job::Short, [=] { memcpy(d, c->data(), c->size()); });
  } else {
    submit(S(st), Job::Short, [=] { memmove(d, s, n); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyBatchAsync(void* const* d, const void* const* s, const size_t* n, size_t k,
                                 struct cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t st) {
  for (size_t i = 0; i < k; i++) cudaMemcpyAsync(d[i], s[i], n[i], cudaMemcpyDefault, st);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int v, size_t n) {
  stream_wait(stream_ref(nullptr).get(), stream_tip(nullptr));
  fill(p, v, n);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t st) {
  submit(S(st), Job::Short, [=] { fill(p, v, n); });
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaMallocFromPoolAsync(void** p, size_t n, cudaMemPool_t, cudaStream_t) {
  return cudaMalloc(p, n);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t st) {
  if (p) submit(S(st), Job::Short, [=] { unmap(p, false); });
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* m, const struct cudaMemPoolProps*) {
  *m = (cudaMemPool_t)malloc(8);
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t m) {
  free((void*)m);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, enum cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const struct cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* m, int) {
  static char c[8];
  *m = (cudaMemPool_t)c;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* h, void* p) {
  Map m;
  if (!find(p, &m) || !m.phys || m.kind != Kind::Device || m.vmm) return ret(cudaErrorInvalidValue);
  memset(h, 0, sizeof *h);
  IpcHandle w{kIpcMagic, getpid(), m.phys->fd, m.phys->dev, m.size};
  memcpy(h, &w, sizeof w);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t h, unsigned) {
  IpcHandle w;
  memcpy(&w, &h, sizeof w);
  if (w.magic != kIpcMagic) return ret(cudaErrorInvalidValue);
  Phys* q = phys_from_peer(w.pid, w.fd, w.dev, false);
  if (!q) return ret(cudaErrorMapBufferObjectFailed);
  *p = map_phys(q, nullptr, w.size, 0, Kind::Device, false);
  phys_unref(q);
  return *p ? cudaSuccess : ret(cudaErrorMapBufferObjectFailed);
}
cudaError_t cudaIpcCloseMemHandle(void* p) {
  return unmap(p, false) ? cudaSuccess : ret(cudaErrorInvalidValue);
}

// ---- streams, events ----
cudaError_t cudaStreamCreate(cudaStream_t* s) {
  *s = (cudaStream_t)stream_create();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return cudaStreamCreate(s); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) {
  return cudaStreamCreate(s);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  stream_destroy(S(s));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  auto p = stream_ref(S(s));
  if (!p) return ret(cudaErrorInvalidResourceHandle);
  stream_wait(p.get(), stream_tip(S(s)));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  auto p = stream_ref(S(s));
  if (!p) return ret(cudaErrorInvalidResourceHandle);
  return stream_done(p.get(), stream_tip(S(s))) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int* p) {
  *p = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* d) {
  *d = current_device();
  return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) {
  *id = (unsigned long long)(uintptr_t)stream_ref(S(s)).get();
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* f) {
  *f = cudaStreamNonBlocking;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus* s) {
  *s = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
// Only the status is written: nothing else is read when no capture is active, and
// the argument count differs between CUDA 12 and 13.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, enum cudaStreamCaptureStatus* s,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  *s = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, enum cudaStreamCaptureStatus* s) {
  *s = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t, enum cudaStreamCaptureStatus* s) {
  *s = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* m) {
  thread_local cudaStreamCaptureMode cur = cudaStreamCaptureModeGlobal;
  std::swap(cur, *m);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = (cudaEvent_t) new Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete (Event*)e;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) {
  Mark now{stream_ref(S(s)), stream_tip(S(s)), std::chrono::steady_clock::now()};
  if (!now.stream) return ret(cudaErrorInvalidResourceHandle);
  std::lock_guard<std::mutex> lock(((Event*)e)->mutex);
  ((Event*)e)->last = now;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  return cudaEventRecordWithFlags(e, s, 0);
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  return mark_of(e).passed() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  const Mark m = mark_of(e);
  if (m.stream) stream_wait(m.stream.get(), m.job);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = std::chrono::duration<float, std::milli>(mark_of(b).time - mark_of(a).time).count();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  const Mark m = mark_of(e);
  if (m.passed() || m.stream == stream_ref(S(s))) return cudaSuccess;
  submit(S(s), Job::Blocking, [m] { stream_wait(m.stream.get(), m.job); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* a) {
  submit(S(s), Job::Blocking, [=] { f(a); });
  return cudaSuccess;
}

// ---- kernels ----
// Arguments are not captured here: NCCL launches its kernels through the driver.
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void*) {
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, enum cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, enum cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* f, const void* sym) {
  *f = (cudaFunction_t)sym;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int, size_t) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void*, int, size_t,
                                                                   unsigned) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void**, size_t, cudaStream_t s) {
  launch(S(s), (void*)f, g.x, b.x, nullptr, 0);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void**) {
  launch(S(c->stream), (void*)f, c->gridDim.x, c->blockDim.x, nullptr, 0);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(void* f, dim3 g, dim3 b, void**, size_t, cudaStream_t s) {
  launch(S(s), f, g.x, b.x, nullptr, 0);
  return cudaSuccess;
}

// ---- driver entry points ----
cudaError_t cudaGetDriverEntryPointByVersion(const char* n, void** p, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* st) {
  static void* self = [] {
    Dl_info i;
    return dladdr((void*)&cudaMalloc, &i) ? dlopen(i.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  void* f = self && !strncmp(n, "cu", 2) ? dlsym(self, n) : nullptr;
  *p = f;
  if (st) *st = f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  if (!f) logf(0, "driver entry point %s is not emulated", n);
  return f ? cudaSuccess : ret(cudaErrorSymbolNotFound);
}
cudaError_t cudaGetDriverEntryPoint(const char* n, void** p, unsigned long long f,
                                    enum cudaDriverEntryPointQueryResult* st) {
  return cudaGetDriverEntryPointByVersion(n, p, 0, f, st);
}
}
