// SPDX-License-Identifier: Apache-2.0
// Logs as nccl-tests 2.19.6 prints them (src/util.cu), of times that a model gives.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>

#include "base/units.h"

namespace crosstie::test {

struct SyntheticLog {
  std::string program = "all_reduce_perf";
  uint32_t hosts = 1, gpus = 8;
  uint64_t least = 8, most = 1ull << 30;
  std::string environment = "";  // lines of NCCL's log
};

inline std::string rank_line(uint32_t rank, uint32_t host, uint32_t device) {
  return fmt::format(
      "#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:{:02x}:00] NVIDIA H100 80GB "
      "HBM3\n",
      rank, 1000 + rank, fmt::format("node{}", host), device, 16 + device);
}

inline std::string header(const SyntheticLog& of) {
  std::string text = fmt::format(
      "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n"
      "# Collective test starting: {}\n"
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: 2(factor) warmup iters: 1 iters: 20 agg "
      "iters: 1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n",
      of.program, of.least, of.most);
  for (uint32_t rank = 0; rank < of.hosts * of.gpus; rank++)
    text += rank_line(rank, rank / of.gpus, rank % of.gpus);
  return text + of.environment +
         "#\n"
         "#                                                              out-of-place              "
         " "
         "        in-place          \n"
         "#       size         count      type   redop    root     time   algbw   busbw  #wrong    "
         " "
         "time   algbw   busbw  #wrong \n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
         " "
         "(us)  (GB/s)  (GB/s)         \n";
}

inline std::string row_begin(uint64_t bytes) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}", bytes, bytes / 4, "float", "sum", -1);
}
// Of AllReduce on the ranks.
inline std::string row_half(uint64_t bytes, Seconds time, uint64_t wrong = 0, double ranks = 8) {
  const double rate = static_cast<double>(bytes) / time.count() / 1e9;
  return fmt::format("  {:7.2f}  {:6.2f}  {:6.2f}  {:6}", time.count() * 1e6, rate,
                     rate * 2 * (ranks - 1) / ranks, wrong);
}
inline std::string footer() {
  return "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.4 \n#\n"
         "# Collective test concluded: all_reduce_perf\n";
}

inline std::string log_of(const SyntheticLog& of, const std::function<Seconds(uint64_t)>& time) {
  std::string text = header(of);
  for (uint64_t bytes = of.least; bytes <= of.most; bytes *= 2) {
    const auto half = [&] { return row_half(bytes, time(bytes), 0, of.hosts * of.gpus); };
    text += row_begin(bytes) + half() + half() + "\n";
  }
  return text + footer();
}

}  // namespace crosstie::test
