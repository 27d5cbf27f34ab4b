// SPDX-License-Identifier: Apache-2.0
// What the halves of the plugin know together. NCCL makes a profiler and then a tuner of each
// rank's communicator; only the profiler hears the communicator's name, and both the same number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/options.h"
#include "choice/class_rules.h"
#include "choice/nccl_decision.h"
#include "nccl/logger.h"

namespace crosstie::nccl {

struct Known;  // of one communicator, in this process

// A half's share in what the process knows of a communicator: made with the half, gone with it. Any
// thread may make and drop shares at any time; one share is used by one thread at a time, except
// where said.
class Share {
 public:
  // Without a number (tuner interfaces 2 to 4) nothing is known of the communicator, and nobody is
  // told. The first share of the process reads the files that the environment names, for all; of
  // one that cannot be read it says so, once.
  Share(std::optional<uint64_t> communicator, const Environment& environment, const Logger& log);
  ~Share();
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Several ranks of a communicator may live in one process and each be told a name.
  void tell_name(std::string_view name);
  // Empty where nobody was told one, or two ranks different ones: which was first must not matter.
  // NCCL makes the profilers of all ranks before the tuner of any.
  std::string name() const;

  // The tuner tells, any thread asks; unknown until then.
  void tell_class(TrafficClass traffic);
  TrafficClass traffic_class() const;

  // False where another rank's tuner in this process decides from other facts of the communicator.
  bool agrees_on(uint64_t facts);

  const ClassRules& class_rules() const;

  // Communicators of one shape and class share one. The first takes up to half a second where no
  // system is named, and lets others wait. None where the profile that is named cannot be had.
  std::shared_ptr<const NcclDecision> decision(const NcclCommunicator& communicator,
                                               const CommunicatorClass& of);

 private:
  const std::optional<uint64_t> id_;
  Known* const known_;  // null without a number
};

// Communicators that the process knows anything of, for tests: 0 once all shares are gone.
size_t communicators_known();

}  // namespace crosstie::nccl
