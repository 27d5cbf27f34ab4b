// SPDX-License-Identifier: Apache-2.0
// The profiler interfaces, versions 4 (NCCL 2.27), 5 (2.28) and 6 (2.29 and later): what a
// collective's and a kernel channel's event tell. Versions 1 to 3 name no communicator and carry
// no times of the GPU.
#pragma once
#include "nccl/abi/common.h"

namespace crosstie::nccl::abi {

enum ProfilerEventType : uint64_t {  // bits of the mask too
  kGroupEvent = 1 << 0,
  kCollectiveEvent = 1 << 1,
  kKernelChannelEvent = 1 << 6,
};
enum ProfilerEventState : int { kKernelChannelStop = 22 };

// `type` is 8 bits wide in version 4, with padding after it that NCCL does not clear, and 64 bits
// from version 5 on. What only other events tell is left out; NCCL owns the memory.
template <class Type>
struct ProfilerEvent {
  Type type;
  void* parent;  // what start_event gave for the event that this one is part of
  int rank;
  struct Collective {
    uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    size_t count;
    int root;
    const char* datatype;
    uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
  };
  struct KernelChannel {
    uint8_t channel;
    uint64_t timer;  // of the GPU, nanoseconds
  };
  union {
    Collective collective;
    KernelChannel kernel_channel;
  };
};
using ProfilerEventV4 = ProfilerEvent<uint8_t>;
using ProfilerEventV5 = ProfilerEvent<uint64_t>;

union ProfilerStateArguments {
  uint64_t kernel_channel_timer;
};

struct ProfilerV4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* communicator_name, uint64_t communicator,
                 int nodes, int ranks, int rank, Logger);
  Result (*start_event)(void* context, void** handle, ProfilerEventV4*);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, ProfilerEventState, ProfilerStateArguments*);
  Result (*finalize)(void* context);
};

struct ProfilerV5 {
  const char* name;
  Result (*init)(void** context, uint64_t communicator, int* mask, const char* communicator_name,
                 int nodes, int ranks, int rank, Logger);
  Result (*start_event)(void* context, void** handle, ProfilerEventV5*);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, ProfilerEventState, ProfilerStateArguments*);
  Result (*finalize)(void* context);
};
using ProfilerV6 = ProfilerV5;  // version 6 adds events of copy engines

// Taken with a compiler from NCCL 2.30.7's headers, x86-64.
template <class Event>
constexpr bool laid_out_as_nccl() {
  return offsetof(Event, parent) == 8 && offsetof(Event, rank) == 16 &&
         offsetof(Event, collective) == 24 && offsetof(Event, kernel_channel) == 24;
}
static_assert(laid_out_as_nccl<ProfilerEventV4>() && laid_out_as_nccl<ProfilerEventV5>());
static_assert(offsetof(ProfilerEventV5::Collective, function) == 8);
static_assert(offsetof(ProfilerEventV5::Collective, count) == 32);
static_assert(offsetof(ProfilerEventV5::Collective, datatype) == 48);
static_assert(offsetof(ProfilerEventV5::Collective, channels) == 56);
static_assert(offsetof(ProfilerEventV5::Collective, algorithm) == 64);
static_assert(offsetof(ProfilerEventV5::Collective, protocol) == 72);
static_assert(offsetof(ProfilerEventV5::KernelChannel, timer) == 8);
static_assert(sizeof(ProfilerV4) == 48 && sizeof(ProfilerV5) == 48);
static_assert(offsetof(ProfilerV5, start_event) == 16 && offsetof(ProfilerV5, finalize) == 40);

}  // namespace crosstie::nccl::abi
