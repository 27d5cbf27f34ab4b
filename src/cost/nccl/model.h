// SPDX-License-Identifier: Apache-2.0
// NCCL's own decision model: what it takes each algorithm and protocol to cost and which it picks,
// with how many channels, where no tuner and no variable says otherwise. The formulas are those of
// its releases 2.27 to 2.30 (src/graph/tuning.cc, src/enqueue.cc), the constants data/nccl's.
//
// Of the element type it reads nothing: NCCL makes Ring 1024 times as dear for sums of 8-bit floats
// over more than 8 ranks, and has no NVLS for 8-bit integers and most operations but a sum.
#pragma once
#include <array>
#include <optional>

#include "cost/nccl/graph.h"
#include "cost/nccl/release.h"

namespace crosstie {

struct NcclCall {
  Collective collective = Collective::all_reduce;
  uint64_t bytes = 0;       // of the whole buffer: of all ranks' for AllGather and ReduceScatter
  uint32_t operations = 1;  // of a group, in a row on each channel
};

class NcclModel {
 public:
  // Rates are of the user's bytes.
  struct Cost {
    Seconds latency{};
    Bandwidth bandwidth{};
    std::string_view why_not = "";  // never chosen for this reason, and costs nothing; static text
  };
  struct Pick {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    Seconds time{};
    uint32_t channels = 0;  // that it launches
    uint32_t threads = 0;   // of each channel
  };

  NcclModel(const NcclRelease& release, const NcclJob& job);

  // Before what depends on the size. The hierarchical algorithm is not NCCL's.
  const Cost& cost(Collective collective, Algorithm algorithm, Protocol protocol) const;
  // None where the pair is not allowed. Allocates nothing, and so do the others.
  std::optional<Seconds> time(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;
  // The least time; of equal ones the first in NCCL's order. None where nothing is allowed, as with
  // a single rank.
  std::optional<Pick> pick(const NcclCall& call) const;
  // The same for a pair that is given.
  std::optional<Pick> launch(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;

  const NcclJob& job() const { return job_; }
  uint32_t nvls_channels() const { return nvls_channels_; }

 private:
  double correction(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;
  bool on_plateau(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;
  struct Launch {
    uint32_t channels = 0, threads = 0;
  };
  Launch most_that_work(const NcclCall& call, Algorithm algorithm, Protocol protocol) const;
  Launch collnet_direct(const NcclCall& call) const;
  uint64_t thread_bytes(Algorithm algorithm, Protocol protocol) const;
  uint32_t most_threads(Algorithm algorithm, Protocol protocol) const;
  uint32_t scheduled(const NcclCall& call, Algorithm algorithm, Protocol protocol,
                     uint32_t channels) const;
  bool reduces_in_network(Algorithm algorithm) const;

  NcclRelease release_;
  NcclJob job_;
  uint32_t nvls_channels_ = 0;
  std::array<std::array<std::array<Cost, kNcclProtocols>, kNcclAlgorithms>, kNcclCollectives>
      costs_{};
};

}  // namespace crosstie
