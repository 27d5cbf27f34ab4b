// SPDX-License-Identifier: Apache-2.0
// `crosstie bench allreduce` as one rank sees it. Speaks to the library through its public
// header alone, as any user would.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench.h"
#include "command.h"
#include "config.h"
#include "crosstie/crosstie.h"

namespace crosstie::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSchemaVersion = 1;

// Small whole numbers, so that float sums are exact in any order. 13 and 7 have no common
// divisor with a power of two: misplaced pieces do not go unnoticed.
constexpr size_t kPeriod = 13;
float input(int rank, size_t i) {
  return static_cast<float>((static_cast<size_t>(rank) * 7 + i * 3) % kPeriod);
}

struct Timing {
  double microseconds = 0;
  uint64_t wrong = 0;
};

struct Row {
  std::string algorithm;
  uint64_t bytes = 0, count = 0;
  Timing out_of_place, in_place;
  uint64_t counted = 0, scheduled = 0;  // bytes between hosts, of one allreduce, all ranks together
  bool agree = true;                    // counted and scheduled, to the byte
};

struct DestroyComm {
  void operator()(crosstie_comm_t* comm) const { crosstie_comm_destroy(comm); }
};

// A failed call ends the benchmark; only this file throws and catches it.
struct CallFailed {};

class AllReduceBench {
 public:
  AllReduceBench(const BenchOptions& options, crosstie_comm_t* comm)
      : options_(options),
        comm_(comm),
        rank_(crosstie_comm_rank(comm)),
        ranks_(crosstie_comm_ranks(comm)) {
    const size_t most = options.max_bytes / sizeof(float);
    in_.resize(most);
    out_.resize(most);
    for (size_t i = 0; i < kPeriod; i++)
      for (int r = 0; r < ranks_; r++) expected_[i] += input(r, i);
  }

  Row measure(const std::string& algorithm, uint64_t bytes) {
    call_.algorithm = algorithm == "auto" ? nullptr : algorithm.c_str();
    Row row;
    row.count = bytes / sizeof(float);
    row.bytes = row.count * sizeof(float);
    crosstie_traffic_t schedule{};
    const char* chosen = nullptr;
    require(crosstie_allreduce_traffic(comm_, row.count, CROSSTIE_F32, &call_, &schedule, &chosen));
    row.algorithm = chosen;
    row.scheduled = schedule.across_bytes;
    calls_ = 0, moved_ = 0;
    row.out_of_place = time(row.count, in_.data(), out_.data());
    row.in_place = time(row.count, out_.data(), out_.data());
    const uint64_t total = sum(moved_);
    row.counted = total / calls_;
    row.agree = total == calls_ * row.scheduled;
    return row;
  }

  // Whether any rank says so.
  bool any(bool here) { return sum(here ? 1 : 0) > 0; }

  bool is_printer() const { return rank_ == 0; }
  int ranks() const { return ranks_; }
  int hosts() const { return crosstie_comm_hosts(comm_); }

 private:
  void require(crosstie_status_t status) {
    if (status != CROSSTIE_OK) throw CallFailed{};
  }

  void allreduce(size_t count, const float* in, float* out) {
    require(crosstie_allreduce(comm_, in, out, count, CROSSTIE_F32, CROSSTIE_SUM, &call_, nullptr));
    calls_++;
  }

  uint64_t sum(uint64_t value) {
    require(
        crosstie_allreduce(comm_, &value, &value, 1, CROSSTIE_U64, CROSSTIE_SUM, nullptr, nullptr));
    return value;
  }

  uint64_t across_bytes() {
    crosstie_traffic_t traffic{};
    require(crosstie_comm_traffic(comm_, &traffic));
    return traffic.across_bytes;
  }

  void fill(size_t count, float* in) {
    for (size_t i = 0; i < count; i++) in[i] = input(rank_, i);
  }

  void repeat(int times, size_t count, const float* in, float* out) {
    for (int i = 0; i < times; i++) allreduce(count, in, out);
  }

  // Times, then checks the result of one more call on fresh input.
  Timing time(size_t count, float* in, float* out) {
    const uint64_t before = across_bytes();
    fill(count, in);
    repeat(options_.warmup, count, in, out);
    const auto start = Clock::now();
    repeat(options_.iterations, count, in, out);
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    std::fill_n(out, count, -1.0f);
    fill(count, in);
    allreduce(count, in, out);
    moved_ += across_bytes() - before;
    const auto mean = static_cast<double>(sum(static_cast<uint64_t>(took.count()))) / ranks_;
    return {mean / options_.iterations / 1e3, sum(wrong(count, out))};
  }

  uint64_t wrong(size_t count, const float* out) const {
    uint64_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += out[i] != expected_[i % kPeriod];
    return wrong;
  }

  const BenchOptions& options_;
  crosstie_comm_t* comm_;
  crosstie_call_t call_ = CROSSTIE_CALL_INIT;
  const int rank_, ranks_;
  std::vector<float> in_, out_;
  std::array<float, kPeriod> expected_{};
  uint64_t calls_ = 0, moved_ = 0;  // of the row at hand
};

double gigabytes_per_second(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

// The factor of nccl-tests: what each rank's link carries, of a message of so many bytes.
double bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

void print_header(const AllReduceBench& bench) {
  print(fmt::format(
      "# crosstie {} bench allreduce: {} {} on {} {}\n"
      "# algbw and busbw as nccl-tests define them, in 10^9 bytes a second. 'across' is what all "
      "ranks together put to\n"
      "# other hosts in one allreduce: as the endpoints counted it, and as the Schedule says.\n"
      "#\n"
      "#{:>12}{:>14}{:>9}{:>8}{:>7}{:>14}  {:^37}  {:^37}  {:^27}\n"
      "#{:>12}{:>14}{:>9}{:>8}{:>7}{:>14}  {:>10}{:>9}{:>9}{:>9}  {:>10}{:>9}{:>9}{:>9}  {:>13} "
      "{:>13}\n"
      "#{:>12}{:>14}{:>9}{:>8}{:>7}{:>14}  {:>10}{:>9}{:>9}{:>9}  {:>10}{:>9}{:>9}{:>9}  {:>13} "
      "{:>13}\n",
      PACKAGE_VERSION, bench.ranks(), bench.ranks() == 1 ? "rank" : "ranks", bench.hosts(),
      bench.hosts() == 1 ? "host" : "hosts", "", "", "", "", "", "", "out-of-place", "in-place",
      "across", "size", "count", "type", "redop", "root", "algorithm", "time", "algbw", "busbw",
      "#wrong", "time", "algbw", "busbw", "#wrong", "counted", "scheduled", "(B)", "(elements)", "",
      "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(B)", "(B)"));
}

double algorithm_bandwidth(const Row& row, const Timing& timing) {
  return gigabytes_per_second(static_cast<double>(row.bytes), timing.microseconds);
}

double bus_bandwidth(const Row& row, const Timing& timing, int ranks) {
  return algorithm_bandwidth(row, timing) * bus_factor(ranks);
}

std::string columns(const Row& row, const Timing& timing, int ranks) {
  return fmt::format("  {:>10.1f}{:>9.3f}{:>9.3f}{:>9}", timing.microseconds,
                     algorithm_bandwidth(row, timing), bus_bandwidth(row, timing, ranks),
                     timing.wrong);
}

void print_row(const Row& row, int ranks) {
  print(fmt::format(" {:>12}{:>14}{:>9}{:>8}{:>7}{:>14}{}{}  {:>13} {:>13}{}\n", row.bytes,
                    row.count, "float", "sum", -1, row.algorithm,
                    columns(row, row.out_of_place, ranks), columns(row, row.in_place, ranks),
                    row.counted, row.scheduled, row.agree ? "" : "  DIFFER"));
  std::fflush(stdout);
}

// The last lines of nccl-tests' output, for those who parse them.
void print_trailer(const std::vector<Row>& rows, int ranks) {
  uint64_t wrong = 0;
  double total = 0;
  for (const Row& row : rows)
    for (const Timing& timing : {row.out_of_place, row.in_place}) {
      wrong += timing.wrong;
      total += bus_bandwidth(row, timing, ranks);
    }
  print(fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g}\n#\n", wrong,
                    wrong == 0 ? "OK" : "FAILED",
                    total / (2.0 * static_cast<double>(rows.size()))));
}

nlohmann::json to_json(const Row& row, const Timing& timing, int ranks) {
  return {{"time_us", timing.microseconds},
          {"algbw_GBs", algorithm_bandwidth(row, timing)},
          {"busbw_GBs", bus_bandwidth(row, timing, ranks)},
          {"wrong", timing.wrong}};
}

nlohmann::json to_json(const Row& row, int ranks) {
  return {{"size_bytes", row.bytes},
          {"count", row.count},
          {"type", "float"},
          {"redop", "sum"},
          {"algorithm", row.algorithm},
          {"out_of_place", to_json(row, row.out_of_place, ranks)},
          {"in_place", to_json(row, row.in_place, ranks)},
          {"across_counted_bytes", row.counted},
          {"across_scheduled_bytes", row.scheduled}};
}

void print_json(const AllReduceBench& bench, const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) list.push_back(to_json(row, bench.ranks()));
  const nlohmann::json document = {{"schema", kSchemaVersion},
                                   {"benchmark", "allreduce"},
                                   {"ranks", bench.ranks()},
                                   {"hosts", bench.hosts()},
                                   {"results", list}};
  print(document.dump(2) + "\n");
}

std::vector<Row> run(AllReduceBench& bench, const BenchOptions& options) {
  std::vector<Row> rows;
  const bool table = bench.is_printer() && !options.json;
  if (table) print_header(bench);
  for (uint64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes *= static_cast<uint64_t>(options.factor))
    for (const std::string& algorithm : options.algorithms) {
      rows.push_back(bench.measure(algorithm, bytes));
      if (table) print_row(rows.back(), bench.ranks());
      // Nobody reads on: all ranks leave together, so that none has to tell of another's end.
      if (bench.any(table && std::ferror(stdout) != 0)) return rows;
    }
  if (table) print_trailer(rows, bench.ranks());
  if (bench.is_printer() && options.json) print_json(bench, rows);
  return rows;
}

int verdict(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    if (row.out_of_place.wrong + row.in_place.wrong > 0 || !row.agree) return kFindings;
  return kClean;
}

}  // namespace

int bench_allreduce(const BenchOptions& options, const Log& log) {
  signal(SIGPIPE, SIG_IGN);  // a rank that died of it would look like a crash to the others
  crosstie_comm_t* raw = nullptr;
  const auto give_up = [&log] {
    log.error("{}", crosstie_last_error());
    return kCouldNotLook;
  };
  if (const auto status = crosstie_comm_create(&raw, nullptr); status != CROSSTIE_OK) {
    give_up();
    return status == CROSSTIE_ERR_INVALID ? kUsage : kCouldNotLook;
  }
  const std::unique_ptr<crosstie_comm_t, DestroyComm> comm(raw);
  try {
    AllReduceBench bench(options, comm.get());
    return flushed(verdict(run(bench, options)), log);
  } catch (const CallFailed&) {
    return give_up();
  }
}

}  // namespace crosstie::tools
