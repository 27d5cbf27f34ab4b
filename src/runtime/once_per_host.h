// SPDX-License-Identifier: Apache-2.0
// What is dear to find out and alike for all ranks of a host, as what hardware it has, is found out
// by the first of them; the others read what it found.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "base/deadline.h"
#include "base/result.h"

namespace crosstie {

struct HostShare {
  std::string name;  // of what is found out and by which job; the same in all ranks
  int takers = 0;    // ranks of this host, of which the last removes it; 0: not known
  std::filesystem::path folder = "/dev/shm";
};

// What `make` returns, here or within the last minute in another process of this user and host. It
// runs in one process at a time; the others wait, at most `timeout`. Where it fails, the next one
// tries. Removes what other jobs of this user have left in the folder.
Result<std::string> once_per_host(const HostShare& share,
                                  const std::function<Result<std::string>()>& make,
                                  Clock::duration timeout);

}  // namespace crosstie
