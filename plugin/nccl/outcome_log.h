// SPDX-License-Identifier: Apache-2.0
// What NCCL ran and how long it took, a line of JSON for each collective of one rank, as `crosstie
// calibrate` reads it. The format is described in the manual (tools/manual.cc).
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "base/words.h"
#include "nccl/process.h"

namespace crosstie::nccl {

// The rank whose outcomes are logged.
struct LoggedRank {
  uint64_t communicator = 0;
  std::string name;
  int rank = 0, ranks = 0, nodes = 0;
};

// As NCCL tells it. The texts are NCCL's own literals.
struct RunCollective {
  uint64_t sequence = 0;
  const char* function = "";
  const char* datatype = "";
  const char* algorithm = "";
  const char* protocol = "";
  uint64_t count = 0;
  uint32_t channels = 0;  // 0: NCCL does not tell, as with CollNet
};

// "LOG.%h.%p" with the host and the process in place of %h and %p, as NCCL_DEBUG_FILE takes them.
std::string expanded(std::string_view path);

// To append to; several processes may share it, as whole lines are written. Fails for a pipe.
Result<Fd> open_log(const std::string& path);

// Called by NCCL's launching and progress threads at once. Each communicator has its own lock,
// lines and file offset; nothing is allocated but the lines, which are written when they are many
// or old.
class OutcomeLog {
 public:
  OutcomeLog(Fd file, const LoggedRank& rank, const Share& share);
  ~OutcomeLog();  // what never ended is written too, without a time
  OutcomeLog(const OutcomeLog&) = delete;
  OutcomeLog& operator=(const OutcomeLog&) = delete;

  struct Record;
  // NCCL has one handle for each event, and no word for its kind.
  struct Event {
    enum class Kind : uint8_t { launch, collective, channel };
    OutcomeLog* log = nullptr;
    Record* record = nullptr;  // null for a launch
    Kind kind = Kind::launch;
  };

  // The collectives that start from here on share one kernel. 2.27 starts those alone that have a
  // launch with a handle.
  Event* launch();
  // None where its slot is still taken: the collective is then logged without a time.
  Event* start(const RunCollective& collective);
  // On one of the collective's channels. Times are the GPU's, nanoseconds.
  static Event* start_channel(Event& collective, uint64_t time);
  static void stop_channel(Event& channel, uint64_t time);
  // A collective's event ends when it is enqueued, a channel's when the kernel leaves it.
  static void stop(Event& event);

 private:
  void end_if_complete(Record& record);
  void write(Record& record);
  void flush();

  // About as many as CUDA queues. Events hold a slot: it is free again once they have ended.
  static constexpr size_t kSlots = 1024;

  const Fd file_;
  const std::string head_;  // what all lines say of the rank
  const int ranks_;
  const Share& share_;
  std::mutex mutex_;
  std::unique_ptr<std::array<Record, kSlots>> records_;
  Event launch_{this};
  uint64_t started_ = 0, launches_ = 0;
  std::string lines_;
  bool cut_ = false;  // the file ends within a line
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace crosstie::nccl
