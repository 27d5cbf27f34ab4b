// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "base/options.h"

namespace crosstie {

struct RuntimeOptions {
  int rank = -1, ranks = -1;
  std::string address, host;
  std::chrono::nanoseconds join_timeout{}, health_timeout{}, collective_timeout{}, late_warning{};
  Bytes scratch, chunk;
  bool check = false;
};

inline constexpr std::array kRuntimeOptions = {
    row<&RuntimeOptions::rank>(
        "CROSSTIE_RANK", "", "-1",
        "this process's rank; -1: from torchrun's, Open MPI's, PMI's or Slurm's variables"),
    row<&RuntimeOptions::ranks>("CROSSTIE_RANKS", "", "-1",
                                "number of ranks of the job; -1: as for CROSSTIE_RANK"),
    row<&RuntimeOptions::address>(
        "CROSSTIE_ADDRESS", "", "",
        "HOST:PORT where rank 0 is met, at the first of eight ports from PORT that is free; empty: "
        "MASTER_ADDR and MASTER_PORT, else the launcher's"),
    row<&RuntimeOptions::host>("CROSSTIE_HOST", "", "",
                               "name of this host, to draw host boundaries by hand; ranks with one "
                               "name share a host; empty: the kernel's identity"),
    row<&RuntimeOptions::join_timeout>("CROSSTIE_JOIN_TIMEOUT", "", "2m",
                                       "how long the ranks wait for each other at the start"),
    row<&RuntimeOptions::health_timeout>(
        "CROSSTIE_HEALTH_TIMEOUT", "", "30s",
        "a process that gives no sign of life for this long is dead"),
    row<&RuntimeOptions::collective_timeout>(
        "CROSSTIE_COLLECTIVE_TIMEOUT", "", "30m",
        "a collective that takes longer has failed, though all ranks be alive"),
    row<&RuntimeOptions::late_warning>(
        "CROSSTIE_LATE_WARNING", "", "5s",
        "a live rank that keeps a collective waiting for this long is named in a warning"),
    row<&RuntimeOptions::scratch>("CROSSTIE_SCRATCH", "", "16M",
                                  "receive memory of a communicator; the same on all ranks"),
    row<&RuntimeOptions::chunk>("CROSSTIE_CHUNK", "", "256K",
                                "largest piece that a collective moves at once; the same on all "
                                "ranks"),
    row<&RuntimeOptions::check>("CROSSTIE_CHECK", "", "0",
                                "ranks compare what they call before a collective begins; the same "
                                "on all ranks"),
};

// Whether the numbers can work at all.
inline Status check(const RuntimeOptions& options) {
  constexpr uint64_t kLeastScratch = 4 << 10, kLeastChunk = 64;  // a cache line is never cut
  constexpr std::chrono::milliseconds kLeastHealth(100);         // beats are that far apart
  if (options.scratch.count < kLeastScratch)
    return fail(Code::invalid, "CROSSTIE_SCRATCH: {} is less than 4K",
                bytes_text(options.scratch.count));
  if (options.chunk.count < kLeastChunk)
    return fail(Code::invalid, "CROSSTIE_CHUNK: {} is less than 64",
                bytes_text(options.chunk.count));
  if (options.health_timeout < kLeastHealth)
    return fail(Code::invalid, "CROSSTIE_HEALTH_TIMEOUT: {} is less than 100ms",
                duration_text(options.health_timeout));
  return {};
}

}  // namespace crosstie
