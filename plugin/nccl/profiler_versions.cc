// SPDX-License-Identifier: Apache-2.0
// The profiler under each version of NCCL's interface. Whatever happens, NCCL hears success.
#include "nccl/abi/profiler_v4.h"
#include "nccl/guarded.h"
#include "nccl/profiler.h"

namespace crosstie::nccl {
namespace {

constexpr char kName[] = "crosstie";

// The mask is one of the process, and read while others run: it is written once. Each communicator
// asks for the same, as the environment says.
abi::Result init(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks,
                 int rank, abi::Logger log) noexcept {
  *context = nullptr;
  int wanted = 0;
  const abi::Result result = guarded([&] {
    const LoggedRank logged{id, name ? name : "", rank, ranks, nodes};
    auto profiler = std::make_unique<Profiler>(logged, Environment::of_process(),
                                               Logger(log, abi::kLogProfile));
    wanted = profiler->wanted_events();
    *context = profiler.release();
  });
  *mask = wanted;
  return result;
}

abi::Result init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks,
                    int rank, abi::Logger log) noexcept {
  return init(context, id, mask, name, nodes, ranks, rank, log);
}

template <class Event>
OutcomeLog::Event* started(OutcomeLog& log, const Event& event) {
  switch (static_cast<uint64_t>(event.type)) {
    case abi::kGroupEvent:
      return log.launch();
    case abi::kCollectiveEvent: {
      const auto& told = event.collective;
      return log.start({told.sequence, told.function, told.datatype, told.algorithm, told.protocol,
                        told.count, told.channels});
    }
    case abi::kKernelChannelEvent: {  // of point-to-point operations too, which have no parent here
      auto* const parent = static_cast<OutcomeLog::Event*>(event.parent);
      return parent ? OutcomeLog::start_channel(*parent, event.kernel_channel.timer) : nullptr;
    }
    default:
      return nullptr;
  }
}

// NCCL starts other events too, where one that it was asked for lies within them.
template <class Event>
abi::Result start_event(void* context, void** handle, Event* event) noexcept {
  *handle = nullptr;
  if (context == nullptr) return abi::kSuccess;
  return guarded([&] {
    OutcomeLog* const log = static_cast<Profiler*>(context)->outcomes();
    if (log != nullptr) *handle = started(*log, *event);
  });
}

abi::Result stop_event(void* handle) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  return guarded([&] { OutcomeLog::stop(*static_cast<OutcomeLog::Event*>(handle)); });
}

abi::Result record_event_state(void* handle, abi::ProfilerEventState state,
                               abi::ProfilerStateArguments* arguments) noexcept {
  if (handle == nullptr || state != abi::kKernelChannelStop) return abi::kSuccess;
  return guarded([&] {
    OutcomeLog::stop_channel(*static_cast<OutcomeLog::Event*>(handle),
                             arguments->kernel_channel_timer);
  });
}

abi::Result finalize(void* context) noexcept {
  return guarded([&] { delete static_cast<Profiler*>(context); });
}

}  // namespace

// NCCL looks for data under these names.
#pragma GCC visibility push(default)
extern "C" {
extern const abi::ProfilerV4 ncclProfiler_v4;
extern const abi::ProfilerV5 ncclProfiler_v5;
extern const abi::ProfilerV6 ncclProfiler_v6;
}
#pragma GCC visibility pop
const abi::ProfilerV4 ncclProfiler_v4 = {
    kName, init_v4, start_event<abi::ProfilerEventV4>, stop_event, record_event_state, finalize};
const abi::ProfilerV5 ncclProfiler_v5 = {
    kName, init, start_event<abi::ProfilerEventV5>, stop_event, record_event_state, finalize};
const abi::ProfilerV6 ncclProfiler_v6 = {
    kName, init, start_event<abi::ProfilerEventV5>, stop_event, record_event_state, finalize};

}  // namespace crosstie::nccl
