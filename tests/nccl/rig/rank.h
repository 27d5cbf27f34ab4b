// SPDX-License-Identifier: Apache-2.0
// One rank of a run of ncclrig: a process that drives the stock libnccl on an emulated GPU.
#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <string>
#include <vector>

struct Options {
  int nodes = 1, gpus = 2, rounds = 1, timeout_s = 120;
  std::vector<std::string> collectives = {"allreduce"};
  size_t min_bytes = 1024, max_bytes = 1 << 20, factor = 4;
  std::vector<std::string> names;
  bool init_only = false, keep = false, abort = false;
  std::string machine, nccl, log_dir;

  int ranks() const { return nodes * gpus; }
};

// Shared by all ranks, for what NCCL leaves to the application.
struct Shared {
  std::atomic<int> arrived, generation, failed;
  ncclUniqueId id;
};

// Exit statuses of a rank.
enum Status { kDone = 0, kUsage = 2, kNcclFailed = 3, kPeerFailed = 4 };

// Loads NCCL and attaches the rig to it; ends the process if that cannot be. Once, before the
// ranks are forked: they share the pages.
void load_libraries(const std::string& nccl);

class Rank {
 public:
  Rank(int rank, const Options& options, Shared& shared)
      : rank_(rank), options_(options), shared_(shared) {}
  // Ends the process.
  [[noreturn]] void run();

 private:
  void set_environment() const;
  void round(int number);
  void create(int number);
  void enqueue(const std::string& collective, size_t bytes);
  ncclResult_t issue(const std::string& collective, size_t count) const;
  void destroy();
  void barrier() const;
  void require(const char* what, ncclResult_t result) const;

  const int rank_;
  const Options& options_;
  Shared& shared_;
  ncclComm_t communicator_ = nullptr;      // the newest
  std::vector<ncclComm_t> communicators_;  // all that there are
  cudaStream_t stream_ = nullptr;
  float *send_ = nullptr, *receive_ = nullptr;
};
