// SPDX-License-Identifier: Apache-2.0
// Emulated devices and their memory: memfd-backed host memory, so that CUDA IPC, cuMem file
// descriptor export and peer mappings in other processes are real shared memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rig {
int current_device();  // of this thread
void set_device(int);
int attribute(int which, int dev);  // CU_DEVICE_ATTRIBUTE_*
size_t device_bytes();
uint64_t allocation_count();

// One physical allocation.
struct Phys {
  int fd = -1, dev = 0, refs = 1;
  size_t size = 0;
  bool host = false;
  bool vmm = false;  // made by cuMemCreate
};
enum class Kind { Device, Host, Registered };

// One mapped range. Registered ones belong to the application and have no Phys.
struct Map {
  uintptr_t at = 0;
  size_t size = 0;
  Phys* phys = nullptr;
  Kind kind = Kind::Device;
  bool vmm = false;
};

Phys* phys_new(size_t size, int dev, bool host, bool vmm);
Phys* phys_from_fd(int fd, int dev, bool vmm);             // takes ownership of fd
Phys* phys_from_peer(int pid, int fd, int dev, bool vmm);  // another process's fd
void phys_ref(Phys*);
void phys_unref(Phys*);

void* map_phys(Phys*, void* at, size_t size, size_t offset, Kind, bool vmm);  // at null: anywhere
bool unmap(void* p, bool keep_reserved);
bool find(const void* p, Map* out);  // the range that contains p
void add_registered(void* p, size_t n);
void fill(void* p, int value, size_t n);
}  // namespace rig
