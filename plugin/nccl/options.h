// SPDX-License-Identifier: Apache-2.0
// The variables of the NCCL plugins.
#pragma once
#include "base/options.h"

namespace crosstie::nccl {

enum class TunerMode : uint8_t { off, shadow, act };

struct TunerOptions {
  TunerMode mode = TunerMode::act;
};

struct ClassOptions {
  std::string rules;
};

struct ProfileOptions {
  std::string profile;
};

struct ProfilerOptions {
  std::string log;
};

}  // namespace crosstie::nccl

template <>
struct crosstie::Names<crosstie::nccl::TunerMode> {
  static constexpr std::array<std::string_view, 3> all = {"off", "shadow", "act"};
};

namespace crosstie::nccl {

inline constexpr Option<TunerOptions> kTunerOptions[] = {
    row<&TunerOptions::mode>("CROSSTIE_TUNER", "", "act",
                             "what the NCCL tuner does: nothing, log what it would choose, or "
                             "choose"),
};

inline constexpr Option<ClassOptions> kClassOptions[] = {
    row<&ClassOptions::rules>("CROSSTIE_CLASS_RULES", "", "",
                              "file of rules that say what an NCCL communicator is for, by its "
                              "name and shape, before the built-in ones"),
};

inline constexpr Option<ProfileOptions> kProfileOptions[] = {
    row<&ProfileOptions::profile>("CROSSTIE_PROFILE", "", "",
                                  "system that the NCCL tuner decides for: the name of one that is "
                                  "built in, or varied as for explain, or a file that calibrate "
                                  "wrote; the same on all ranks"),
};

inline constexpr Option<ProfilerOptions> kProfilerOptions[] = {
    row<&ProfilerOptions::log>("CROSSTIE_PROFILE_LOG", "", "",
                               "file to which the NCCL profiler adds a line of JSON for each "
                               "collective, with what ran and how long it took; %h is the host, "
                               "%p the process"),
};

}  // namespace crosstie::nccl
