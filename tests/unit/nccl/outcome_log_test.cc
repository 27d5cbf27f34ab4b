// SPDX-License-Identifier: Apache-2.0
// The profiler's log, by the calls that NCCL makes: a collective starts, ends when it is enqueued,
// and its channels start and end when the GPU says so.
#include "nccl/outcome_log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "nccl/abi/profiler_v4.h"

using namespace crosstie;
using namespace crosstie::nccl;
using nlohmann::json;

extern "C" {
extern const abi::ProfilerV4 ncclProfiler_v4;
extern const abi::ProfilerV5 ncclProfiler_v5;
}

namespace {

// A file that is gone with the test.
class Lines {
 public:
  Lines() : path_(std::filesystem::temp_directory_path() / fmt::format("outcomes.{}", getpid())) {
    std::filesystem::remove(path_);
  }
  ~Lines() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }
  std::vector<json> read() const {
    std::vector<json> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) all.push_back(json::parse(line));
    return all;
  }

 private:
  std::filesystem::path path_;
};

const LoggedRank kRank{0x2a, "DATA_PARALLEL_GROUP:\"1\"", 3, 16, 2};
constexpr RunCollective kRun{5, "ReduceScatter", "ncclBfloat16", "NVLS_TREE", "SIMPLE", 1000, 2};

Share share_of(uint64_t number) {
  return Share(number, Environment(), Logger(nullptr, abi::kLogProfile));
}

// Channel after channel, each a microsecond, and the second begins where the first ends.
void run_channels(OutcomeLog::Event& collective, uint64_t from, int channels) {
  for (int c = 0; c < channels; c++) {
    OutcomeLog::Event* channel =
        OutcomeLog::start_channel(collective, from + 1000 * static_cast<uint64_t>(c));
    OutcomeLog::stop_channel(*channel, from + 1000 * static_cast<uint64_t>(c + 1));
    OutcomeLog::stop(*channel);
  }
}

}  // namespace

Test(outcome_log, a_collective_is_a_line_with_what_ran_and_the_time_on_the_gpu) {
  Lines lines;
  Share share = share_of(kRank.communicator);
  share.tell_class(TrafficClass::dp);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    log.launch();
    OutcomeLog::Event* collective = log.start(kRun);
    OutcomeLog::stop(*collective);
    run_channels(*collective, 5000, 2);
  }
  const auto all = lines.read();
  cr_assert(all.size() == 1);
  json line = all[0];
  cr_assert(line.erase("at_us") == 1);
  cr_assert(line == json::parse(R"({"schema": 1, "communicator": "0x2a",
      "name": "DATA_PARALLEL_GROUP:\"1\"", "class": "dp", "rank": 3, "ranks": 16, "nodes": 2,
      "launch": 1, "sequence": 5, "collective": "reduce_scatter", "count": 1000,
      "datatype": "bfloat16", "bytes": 32000, "algorithm": "nvls_tree", "protocol": "simple",
      "channels": 2, "time_us": 2.0})"));
}

Test(outcome_log, channels_may_end_before_the_collective_is_enqueued) {
  Lines lines;
  Share share = share_of(1);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    OutcomeLog::Event* collective = log.start(kRun);
    run_channels(*collective, 0, 2);
    OutcomeLog::stop(*collective);
  }
  cr_assert(lines.read().at(0)["time_us"] == 2.0);
}

Test(outcome_log, what_never_ended_has_no_time) {
  Lines lines;
  Share share = share_of(1);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    OutcomeLog::stop(*log.start(kRun));
    OutcomeLog::Event* begun = log.start(kRun);
    OutcomeLog::start_channel(*begun, 1);
  }
  const auto all = lines.read();
  cr_assert(all.size() == 2 && all[0]["time_us"].is_null() && all[1]["time_us"].is_null());
}

Test(outcome_log, where_nccl_does_not_tell_the_channels_all_that_came_count) {
  Lines lines;
  Share share = share_of(1);
  RunCollective collnet = kRun;
  collnet.channels = 0;
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    OutcomeLog::Event* collective = log.start(collnet);
    OutcomeLog::stop(*collective);
    run_channels(*collective, 100, 4);
  }
  const auto all = lines.read();
  cr_assert(all.size() == 1 && all[0]["channels"] == 4 && all[0]["time_us"] == 4.0);
}

Test(outcome_log, collectives_of_one_kernel_share_a_launch) {
  Lines lines;
  Share share = share_of(1);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    log.launch(), log.start(kRun), log.start(kRun);
    log.launch(), log.start(kRun);
  }
  const auto all = lines.read();
  cr_assert(all.size() == 3 && all[0]["launch"] == all[1]["launch"]);
  cr_assert(all[1]["launch"] != all[2]["launch"]);
}

Test(outcome_log, more_collectives_than_slots_are_all_logged_once) {
  Lines lines;
  Share share = share_of(1);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    for (uint64_t i = 0; i < 5000; i++) {
      RunCollective run = kRun;
      run.sequence = i;
      OutcomeLog::Event* collective = log.start(run);
      if (collective && i % 3) OutcomeLog::stop(*collective), run_channels(*collective, 0, 2);
    }
  }
  std::vector<int> seen(5000);
  for (const json& line : lines.read()) seen.at(line["sequence"])++;
  cr_assert(std::ranges::count(seen, 1) == 5000);
}

Test(outcome_log, a_collective_never_has_the_time_of_another_however_many_are_under_way) {
  Lines lines;
  Share share = share_of(1);
  {
    OutcomeLog log(*open_log(lines.path()), kRank, share);
    std::vector<OutcomeLog::Event*> all;
    for (uint64_t i = 0; i < 1500; i++) {
      RunCollective run = kRun;
      run.sequence = i, run.channels = static_cast<uint32_t>(i % 5 + 1);
      all.push_back(log.start(run));
      if (all.back()) OutcomeLog::stop(*all.back());
    }
    for (size_t i = 0; i < all.size(); i++)
      if (all[i]) run_channels(*all[i], 0, static_cast<int>(i % 5 + 1));
  }
  size_t timed = 0;
  for (const json& line : lines.read()) {
    if (line["time_us"].is_null()) continue;
    cr_assert(line["time_us"] == static_cast<double>(line["sequence"].get<int>() % 5 + 1));
    timed++;
  }
  cr_assert(timed >= 1000);
}

Test(outcome_log, a_pipe_is_refused_as_its_reader_could_end_the_job) {
  Lines lines;
  mkfifo(lines.path().c_str(), 0600);
  const Fd reader(open(lines.path().c_str(), O_RDONLY | O_NONBLOCK));
  const auto file = open_log(lines.path());
  cr_assert(!file && file.error().text.find("pipe") != std::string::npos);
}

Test(outcome_log, host_and_process_are_put_into_the_name) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  cr_assert(expanded("log.%h.%p.%x%") == fmt::format("log.{}.{}.%x%", host, getpid()));
}

Test(outcome_log, a_file_that_cannot_be_opened_is_an_error_that_names_it) {
  const auto file = open_log("/nowhere/log");
  cr_assert(!file && file.error().text.find("/nowhere/log") != std::string::npos);
}

Test(profiler, without_a_log_nccl_is_asked_for_no_events) {
  unsetenv("CROSSTIE_PROFILE_LOG");
  void* context = nullptr;
  int mask = -1;
  cr_assert(ncclProfiler_v5.init(&context, 1, &mask, nullptr, 1, 2, 0, nullptr) == abi::kSuccess);
  cr_assert(mask == 0 && context != nullptr && communicators_known() == 1);
  cr_assert(ncclProfiler_v5.finalize(context) == abi::kSuccess);
  cr_assert(communicators_known() == 0);
}

Test(profiler, a_log_that_cannot_be_opened_asks_for_no_events_and_fails_nothing) {
  setenv("CROSSTIE_PROFILE_LOG", "/nowhere/log", 1);
  void* context = nullptr;
  int mask = -1;
  cr_assert(ncclProfiler_v5.init(&context, 1, &mask, "x", 1, 2, 0, nullptr) == abi::kSuccess);
  cr_assert(mask == 0);
  ncclProfiler_v5.finalize(context);
}

namespace {

// One AllReduce on one channel, of 3 us, and events around it that nobody wants.
template <class Table, class Event>
void life(const Table& table, void* context) {
  Event event{};
  void *handle = &event, *collective = nullptr, *channel = nullptr;
  event.type = abi::kGroupEvent;
  table.start_event(context, &handle, &event);
  cr_assert(handle != nullptr && handle != &event);
  table.stop_event(handle);
  event.type = 1 << 2;  // point to point: its channels have no parent here
  handle = &event;
  table.start_event(context, &handle, &event);
  cr_assert(handle == nullptr);
  event.type = abi::kCollectiveEvent;
  event.collective = {9, "AllReduce", nullptr, nullptr, 64, 0, "ncclFloat32", 1, 4, "RING", "LL"};
  table.start_event(context, &collective, &event);
  table.stop_event(collective);
  Event begin{};
  begin.type = abi::kKernelChannelEvent;
  begin.parent = collective;
  begin.kernel_channel = {0, 1000};
  table.start_event(context, &channel, &begin);
  abi::ProfilerStateArguments end{4000};
  table.record_event_state(channel, abi::kKernelChannelStop, &end);
  table.stop_event(channel);
  begin.parent = nullptr, handle = &event;
  table.start_event(context, &handle, &begin);
  cr_assert(handle == nullptr);
  table.finalize(context);
}

void check(const Lines& lines) {
  const json line = lines.read().at(0);
  cr_assert(line["collective"] == "all_reduce" && line["algorithm"] == "ring");
  cr_assert(line["protocol"] == "ll" && line["bytes"] == 256 && line["sequence"] == 9);
  cr_assert(line["time_us"] == 3.0 && line["name"] == "name" && line["launch"] == 1);
}

}  // namespace

Test(profiler, versions_4_and_5_log_what_nccl_tells) {
  Lines lines;
  setenv("CROSSTIE_PROFILE_LOG", lines.path().c_str(), 1);
  void* context = nullptr;
  int mask = 0;
  ncclProfiler_v5.init(&context, 1, &mask, "name", 1, 2, 0, nullptr);
  cr_assert(mask == (abi::kCollectiveEvent | abi::kKernelChannelEvent));
  life<abi::ProfilerV5, abi::ProfilerEventV5>(ncclProfiler_v5, context);
  check(lines);
  std::filesystem::remove(lines.path());
  ncclProfiler_v4.init(&context, &mask, "name", 1, 1, 2, 0, nullptr);
  life<abi::ProfilerV4, abi::ProfilerEventV4>(ncclProfiler_v4, context);
  check(lines);
}

// NCCL calls with null after a failed init, and for events that were given no handle.
Test(profiler, null_is_taken_everywhere) {
  void* handle = &handle;
  abi::ProfilerEventV5 event{};
  event.type = abi::kCollectiveEvent;
  cr_assert(ncclProfiler_v5.start_event(nullptr, &handle, &event) == abi::kSuccess);
  cr_assert(handle == nullptr);
  cr_assert(ncclProfiler_v5.stop_event(nullptr) == abi::kSuccess);
  cr_assert(ncclProfiler_v5.record_event_state(nullptr, abi::kKernelChannelStop, nullptr) ==
            abi::kSuccess);
  cr_assert(ncclProfiler_v5.finalize(nullptr) == abi::kSuccess);
}
