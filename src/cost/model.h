// SPDX-License-Identifier: Apache-2.0
// The model of our own: how long a collective takes on a system, as a sum of named terms.
//
// Where NCCL's model has one latency and one rate for each pair, this one has mechanisms. A step
// costs what its link and protocol cost; bytes cost what the narrowest part on their way lets
// through; LL lines that leave a node are read by a CPU thread first; messages above a size ask
// first on some networks; and chunks that are in a pipeline show part of their latency, so that
// between "all latency" and "all bytes" a time is more than the sum of both:
//
//   t = start + L + B + 2 k sqrt(L B)      L: steps in a row, B: bytes over the narrowest part
//
// which is the best that any chunk size reaches for k = 1, (sqrt(L) + sqrt(B))^2, and what rings,
// whose chunks need no other pipeline, come to for k = 0. Chunks end growing at some size, and
// from there on what they fail to hide stays the same.
#pragma once
#include <cstdint>

#include "cost/parameters.h"
#include "cost/prediction.h"
#include "cost/system_facts.h"

namespace crosstie {

struct CostJob {
  uint32_t ranks = 0, nodes = 0;  // a node is NCCL's
  uint32_t gpus_per_process = 1;
};

class CostModel {
 public:
  CostModel(const ParameterValues& parameters, const SystemFacts& facts, const CostJob& job);

  // Whether the algorithm exists for the collective, on such a system and job. Whether NCCL allows
  // it is another question.
  bool can_run(Collective collective, Algorithm algorithm, Protocol protocol) const;
  // Where can_run(). bytes: the whole buffer, as NCCL counts them.
  Prediction predict(Collective collective, Algorithm algorithm, Protocol protocol,
                     uint64_t bytes) const;

 private:
  struct Part;
  double at(Parameter parameter) const { return parameters_[parameter]; }
  Seconds us(Parameter parameter) const { return microseconds(at(parameter)); }

  Seconds step_inside(Protocol protocol) const;
  Seconds step_across(Protocol protocol, double message) const;
  Seconds network_extra() const;
  Bandwidth inside() const;
  Bandwidth across() const;
  double protocol_share(Protocol protocol) const;
  Bandwidth proxies(Protocol protocol) const;
  Bandwidth tree_channels() const;
  double used_nics() const;

  void add_start(Protocol protocol, Prediction& to) const;
  void add_pipeline(Parameter share, double bytes, Seconds steps, Seconds time,
                    Prediction& to) const;
  Prediction ring(Collective collective, Protocol protocol, double bytes) const;
  Prediction chain(Protocol protocol, double bytes) const;
  Prediction tree(Protocol protocol, double bytes) const;
  Prediction multicast(Collective collective, double bytes) const;
  Prediction multicast_tree(double bytes) const;
  Prediction pat(double bytes) const;
  Prediction hierarchical(double bytes) const;
  Seconds add_bytes(std::initializer_list<Part> parts, Prediction& to) const;
  Seconds ring_step(Protocol protocol) const;
  Seconds add_ring_bytes(Protocol protocol, double through, Prediction& to) const;
  Seconds multicast_bytes(Collective collective, double bytes) const;

  ParameterValues parameters_;
  SystemFacts facts_;
  CostJob job_;
  double ranks_, nodes_, gpus_;  // gpus_: ranks of a node, on average
};

}  // namespace crosstie
