// SPDX-License-Identifier: Apache-2.0
// What tells apart two processes of a host that see different devices of it: containers hide some,
// device cgroups keep some from being opened, and launchers name those to use.
#pragma once
#include <filesystem>
#include <string>

#include "base/options.h"

namespace crosstie {

// Equal where the same devices are seen. Opens the GPUs' device nodes of `dev` for a moment.
std::string host_view(const Environment& environment, const std::filesystem::path& dev = "/dev");

}  // namespace crosstie
