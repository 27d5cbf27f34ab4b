// SPDX-License-Identifier: Apache-2.0
#include "nccl/outcome_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace crosstie::nccl {

struct OutcomeLog::Record {
  RunCollective collective;
  Event of_collective, of_channels;
  std::chrono::system_clock::time_point at;
  uint64_t launch = 0, first = 0, last = 0;
  uint32_t channels_started = 0, channels_stopped = 0;
  bool open = false, enqueued = false;

  void begin(const RunCollective& started, uint64_t of_launch) {
    collective = started, launch = of_launch;
    at = std::chrono::system_clock::now();
    first = UINT64_MAX, last = 0;
    channels_started = channels_stopped = 0;
    open = true, enqueued = false;
  }
  bool timed() const { return channels_stopped > 0 && channels_stopped == channels_started; }
  // Where NCCL does not tell how many channels there are, any may still come; but none does once
  // as many more collectives have been started as there are slots.
  bool may_have_ended() const { return enqueued && timed() && collective.channels == 0; }
};

namespace {

using Clock = std::chrono::steady_clock;

// A line is some 300 bytes: so many are written at once, or after a second, whichever is first.
constexpr size_t kMuch = 32 * 1024;
constexpr std::chrono::seconds kOld{1};

constexpr int kSchema = 1;

// NCCL's datatypes and their sizes.
constexpr std::pair<std::string_view, uint32_t> kDatatypes[] = {
    {"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclInt32", 4},      {"ncclUint32", 4},
    {"ncclInt64", 8},   {"ncclUint64", 8},   {"ncclFloat16", 2},    {"ncclFloat32", 4},
    {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
};

uint32_t size_of_datatype(std::string_view name) {
  for (const auto& [known, size] : kDatatypes)
    if (known == name) return size;
  return 0;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// NCCL's AllReduce is our all_reduce.
std::string word_of(std::string_view function) {
  std::string out;
  for (const char c : function) {
    if (std::isupper(static_cast<unsigned char>(c)) && !out.empty()) out += '_';
    out += c;
  }
  return lower(out);
}

std::string datatype_of(std::string_view name) {
  return lower(name.starts_with("nccl") ? name.substr(4) : name);
}

// As a tuner is told: the whole buffer, of which AllGather and ReduceScatter count a rank's share.
uint64_t bytes_of(const RunCollective& collective, int ranks) {
  const std::string_view function = collective.function;
  const bool shared_out = function == "AllGather" || function == "ReduceScatter";
  const auto shares = static_cast<uint64_t>(shared_out ? ranks : 1);
  return collective.count * size_of_datatype(collective.datatype) * shares;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string head_of(const LoggedRank& rank) {
  const auto quoted =
      nlohmann::json(rank.name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return fmt::format(
      R"({{"schema":{},"communicator":"{:#x}","name":{},"rank":{},"ranks":{},"nodes":{})", kSchema,
      rank.communicator, quoted, rank.rank, rank.ranks, rank.nodes);
}

}  // namespace

std::string expanded(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); i++) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'h') out += host_name();
    if (next == 'p') out += fmt::format("{}", getpid());
    if (next == 'h' || next == 'p')
      i++;
    else
      out += path[i];
  }
  return out;
}

Result<Fd> open_log(const std::string& path) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644));
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0) return fail_errno(Code::io, path);
  if (S_ISFIFO(found.st_mode))
    return fail(Code::invalid, "{} is a pipe, whose reader would end the job by leaving", path);
  return file;
}

OutcomeLog::OutcomeLog(Fd file, const LoggedRank& rank, const Share& share)
    : file_(std::move(file)),
      head_(head_of(rank)),
      ranks_(rank.ranks),
      share_(share),
      records_(std::make_unique<std::array<Record, kSlots>>()),
      flushed_(Clock::now()) {
  for (Record& record : *records_) {
    record.of_collective = {this, &record, Event::Kind::collective};
    record.of_channels = {this, &record, Event::Kind::channel};
  }
}

OutcomeLog::~OutcomeLog() {
  for (uint64_t i = started_; i < started_ + kSlots; i++)
    if (Record& record = (*records_)[i % kSlots]; record.open) write(record);
  flush();
}

OutcomeLog::Event* OutcomeLog::launch() {
  const std::lock_guard lock(mutex_);
  launches_++;
  return &launch_;
}

OutcomeLog::Event* OutcomeLog::start(const RunCollective& collective) {
  const std::lock_guard lock(mutex_);
  Record& record = (*records_)[started_++ % kSlots];
  if (record.open && !record.may_have_ended()) {
    Record untimed;
    untimed.begin(collective, launches_);
    write(untimed);
    return nullptr;
  }
  if (record.open) write(record);
  record.begin(collective, launches_);
  return &record.of_collective;
}

OutcomeLog::Event* OutcomeLog::start_channel(Event& collective, uint64_t time) {
  if (collective.kind != Event::Kind::collective) return nullptr;
  Record& record = *collective.record;
  const std::lock_guard lock(collective.log->mutex_);
  record.channels_started++;
  record.first = std::min(record.first, time);
  return &record.of_channels;
}

void OutcomeLog::stop_channel(Event& channel, uint64_t time) {
  if (channel.kind != Event::Kind::channel) return;
  const std::lock_guard lock(channel.log->mutex_);
  channel.record->last = std::max(channel.record->last, time);
}

void OutcomeLog::stop(Event& event) {
  if (event.kind == Event::Kind::launch) return;
  Record& record = *event.record;
  const std::lock_guard lock(event.log->mutex_);
  if (event.kind == Event::Kind::channel)
    record.channels_stopped++;
  else
    record.enqueued = true;
  event.log->end_if_complete(record);
}

void OutcomeLog::end_if_complete(Record& record) {
  const uint32_t expected = record.collective.channels;
  if (!record.open || !record.enqueued || !record.timed() || expected == 0) return;
  if (record.channels_stopped >= expected) write(record);
}

void OutcomeLog::write(Record& record) {
  const RunCollective& ran = record.collective;
  const auto at =
      std::chrono::duration_cast<std::chrono::microseconds>(record.at.time_since_epoch());
  const bool timed = record.timed() && record.last >= record.first;
  const auto nanoseconds = static_cast<double>(record.last - record.first);
  lines_ += fmt::format(
      R"({},"class":"{}","at_us":{},"launch":{},"sequence":{},"collective":"{}","count":{},)"
      R"("datatype":"{}","bytes":{},"algorithm":"{}","protocol":"{}","channels":{},"time_us":{}}})"
      "\n",
      head_, crosstie::name(share_.traffic_class()), at.count(), record.launch, ran.sequence,
      word_of(ran.function), ran.count, datatype_of(ran.datatype), bytes_of(ran, ranks_),
      lower(ran.algorithm), lower(ran.protocol), std::max(ran.channels, record.channels_stopped),
      timed ? fmt::format("{:.3f}", nanoseconds / 1e3) : "null");
  record.open = false;
  if (lines_.size() >= kMuch || Clock::now() - flushed_ >= kOld) flush();
}

// What cannot be written is lost: a job does not end because a disk is full. After a line that was
// cut the next begins afresh.
void OutcomeLog::flush() {
  if (cut_) lines_.insert(0, 1, '\n');
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written <= 0) break;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  cut_ = !rest.empty() && (cut_ || rest.size() < lines_.size());
  lines_.clear();
  flushed_ = Clock::now();
}

}  // namespace crosstie::nccl
