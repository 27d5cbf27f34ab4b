// SPDX-License-Identifier: Apache-2.0
#include "rank.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rig.h"

namespace {

// libnccl is loaded at run time, after the emulated CUDA: the tested library is an option.
#define FOR_EACH_NCCL_FUNCTION(X) \
  X(ncclGetUniqueId)              \
  X(ncclCommInitRankConfig)       \
  X(ncclCommDestroy)              \
  X(ncclCommAbort)                \
  X(ncclAllReduce)                \
  X(ncclAllGather)                \
  X(ncclReduceScatter) X(ncclBroadcast) X(ncclReduce) X(ncclGetErrorString) X(ncclGetLastError)

struct Nccl {
#define DECLARE(name) decltype(&::name) name;
  FOR_EACH_NCCL_FUNCTION(DECLARE)
#undef DECLARE

  bool load(void* library) {
#define LOAD(name) \
  if (!(name = (decltype(&::name))dlsym(library, #name))) return false;
    FOR_EACH_NCCL_FUNCTION(LOAD)
#undef LOAD
    return true;
  }
} nccl;

void* open_library(const std::string& path, int flags) {
  void* library = dlopen(path.c_str(), RTLD_NOW | flags);
  if (library) return library;
  fprintf(stderr, "%s\n", dlerror());
  _exit(kUsage);
}

}  // namespace

// The order matters: NCCL opens libnvidia-ml.so.1 by name and gets the one that is already
// loaded.
void load_libraries(const std::string& path) {
  Dl_info self;
  dladdr((void*)&rig_attach, &self);
  const std::string rig = self.dli_fname;
  open_library(rig.substr(0, rig.rfind('/')) + "/libnvidia-ml.so.1", RTLD_GLOBAL);
  void* library = open_library(path, RTLD_LOCAL);
  if (rig_attach("libnccl.so") > 0 && nccl.load(library)) return;
  fprintf(stderr, "cannot attach to %s\n", path.c_str());
  _exit(kUsage);
}

void Rank::require(const char* what, ncclResult_t result) const {
  if (result == ncclSuccess) return;
  fprintf(stderr, "[rank %d] %s: %s (%s)\n", rank_, what, nccl.ncclGetErrorString(result),
          nccl.ncclGetLastError(nullptr));
  shared_.failed++;
  _exit(kNcclFailed);
}

// Bounded by the rank's alarm.
void Rank::barrier() const {
  const int generation = shared_.generation.load();
  if (shared_.arrived.fetch_add(1) + 1 == options_.ranks()) {
    shared_.arrived = 0;
    shared_.generation++;
    return;
  }
  while (shared_.generation.load() == generation) {
    if (shared_.failed.load()) _exit(kPeerFailed);
    usleep(200);
  }
}

// What makes the rank a GPU of its own node, and defaults that the caller may override.
void Rank::set_environment() const {
  const std::string node = "rig-node-" + std::to_string(rank_ / options_.gpus);
  const std::string log = options_.log_dir + "/rank" + std::to_string(rank_) + ".log";
  const std::string topology = options_.log_dir + "/topology.xml";
  setenv("NCCL_HOSTID", node.c_str(), 1);
  setenv("NCCL_TOPO_FILE", topology.c_str(), 1);
  setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  const std::pair<const char*, const char*> defaults[] = {
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "TUNING,INIT,ENV"},
      {"NCCL_NET_PLUGIN", "none"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_DEBUG_TIMESTAMP_FORMAT", ""},
  };
  for (const auto& [name, value] : defaults) setenv(name, value, 0);
}

void Rank::create(int number) {
  if (rank_ == 0) require("ncclGetUniqueId", nccl.ncclGetUniqueId(&shared_.id));
  barrier();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (!options_.names.empty())
    config.commName = options_.names[static_cast<size_t>(number) % options_.names.size()].c_str();
  require("ncclCommInitRankConfig", nccl.ncclCommInitRankConfig(&communicator_, options_.ranks(),
                                                                shared_.id, rank_, &config));
  communicators_.push_back(communicator_);
  barrier();
}

ncclResult_t Rank::issue(const std::string& collective, size_t count) const {
  const auto type = ncclFloat;
  const size_t share = count / static_cast<size_t>(options_.ranks());
  if (collective == "allgather")
    return nccl.ncclAllGather(send_, receive_, share, type, communicator_, stream_);
  if (collective == "reducescatter")
    return nccl.ncclReduceScatter(send_, receive_, share, type, ncclSum, communicator_, stream_);
  if (collective == "broadcast")
    return nccl.ncclBroadcast(send_, receive_, count, type, 0, communicator_, stream_);
  if (collective == "reduce")
    return nccl.ncclReduce(send_, receive_, count, type, ncclSum, 0, communicator_, stream_);
  return nccl.ncclAllReduce(send_, receive_, count, type, ncclSum, communicator_, stream_);
}

// Whole elements, and the same number for each rank.
void Rank::enqueue(const std::string& collective, size_t bytes) {
  const auto ranks = static_cast<size_t>(options_.ranks());
  const size_t count = std::max<size_t>(bytes / sizeof(float) / ranks, 1) * ranks;
  const bool shared_out = collective == "allgather" || collective == "reducescatter";
  require(collective.c_str(), issue(collective, shared_out ? count : bytes / sizeof(float)));
  cudaStreamSynchronize(stream_);
}

// The kernels do nothing here. Inside a node NCCL does not notice; between nodes its progress
// thread waits for them for ever, and only an abort ends it.
void Rank::destroy() {
  barrier();
  for (const ncclComm_t communicator : communicators_)
    if (options_.nodes > 1 || options_.abort)
      require("ncclCommAbort", nccl.ncclCommAbort(communicator));
    else
      require("ncclCommDestroy", nccl.ncclCommDestroy(communicator));
  communicators_.clear();
  barrier();
}

void Rank::round(int number) {
  create(number);
  if (rank_ == 0) printf("round %d\n", number);
  if (!options_.init_only)
    for (const std::string& collective : options_.collectives)
      for (size_t b = options_.min_bytes; b <= options_.max_bytes; b *= options_.factor)
        enqueue(collective, b);
  if (!options_.keep || number + 1 == options_.rounds) destroy();
}

void Rank::run() {
  alarm(static_cast<unsigned>(options_.timeout_s));
  set_environment();
  cudaSetDevice(rank_ % options_.gpus);
  cudaStreamCreate(&stream_);
  cudaMalloc((void**)&send_, options_.max_bytes + 4096);
  cudaMalloc((void**)&receive_, options_.max_bytes + 4096);
  for (int i = 0; i < options_.rounds; i++) round(i);
  if (rank_ == 0) printf("unsupported calls %lu\n", rig_unsupported_count());
  fflush(nullptr);
  // Exit handlers of emulated libraries may wait for detached threads.
  _exit(kDone);
}
