// SPDX-License-Identifier: Apache-2.0
// What of NCCL's algorithms and protocols a job's environment leaves it to choose from, and what it
// then ran.
#pragma once
#include <bitset>

#include "cost/nccl/model.h"
#include "cost/nccl/pair.h"

namespace crosstie {

class NcclLimits {
 public:
  NcclLimits();  // all is allowed

  // As in NCCL's environment: NCCL_ALGO, NCCL_PROTO ("Ring", "^Tree,NVLS",
  // "ring;allreduce:tree") and NCCL_NVLS_ENABLE. Of other variables it takes no notice. Fails for
  // what NCCL fails for.
  Status set(std::string_view variable, std::string_view value);
  static bool heeds(std::string_view variable);
  void only(Algorithm algorithm);
  void only(Protocol protocol);

  void without_nvls() { nvls_ = false; }

  bool allows(Collective collective, NcclPair pair) const;
  // What was set, as "NCCL_ALGO=Ring NCCL_PROTO=LL"; empty: nothing.
  const std::string& text() const { return text_; }

 private:
  template <size_t count>
  using Sets = std::array<std::bitset<count>, kNcclCollectives>;

  Sets<kNcclAlgorithms> algorithms_;
  Sets<kNcclProtocols> protocols_;
  bool nvls_ = true;
  std::string text_;
};

// The least time by NCCL's own model of what the limits allow. Where the model has none of these (a
// variable also forces what NCCL would not choose), the ring if it is allowed, with Simple if that
// is. None where the limits leave nothing.
std::optional<NcclPair> as_run(const NcclModel& model, const NcclCall& call,
                               const NcclLimits& limits);

}  // namespace crosstie
