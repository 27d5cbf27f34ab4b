// SPDX-License-Identifier: Apache-2.0
// Interface of the emulated CUDA (libcuda.so.1) to the other parts of the rig.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
// One kernel launch as the emulated driver sees it.
struct rig_launch {
  const char* name;  // of the kernel's symbol in the attached library, or "?"
  unsigned grid, block;
  const void* args;  // a copy; empty if the launch did not go through the driver's interface
  size_t args_size;
};

// Called on the stream's worker thread, in stream order. Without a hook, kernels do nothing.
typedef void (*rig_kernel_hook)(const rig_launch*);
void rig_set_kernel_hook(rig_kernel_hook);

// Redirects every CUDA runtime function that is linked into the mapped library whose path
// contains `path_part` (say "libnccl.so") to the emulation, in memory only. Returns how many,
// or -1. A second call does nothing and returns 0.
int rig_attach(const char* path_part);

// Address and size of any .symtab symbol of the attached library, and the reverse; null if
// there is none.
void* rig_symbol(const char* name, size_t* size);
const char* rig_symbol_at(const void* address);

struct rig_counters {
  uint64_t launches, allocs, unsupported;
};
void rig_get_counters(rig_counters*);
uint64_t rig_unsupported_count();
}

namespace rig {
int ndev();
const char* busid(int dev);  // like 0000:1b:00.0
int env_int(const char* name, int otherwise);
// Level 0 is always printed, 1 and 2 with NCCLRIG_LOG.
void logf(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));
}  // namespace rig
