// SPDX-License-Identifier: Apache-2.0
#include "driver/nccl.h"

namespace crosstie {

Result<Driver<Nccl>> open_nccl() {
  auto library = open_library("libnccl.so.2");
  if (!library) return pass(library);
  Nccl nccl;
  const Status found = find(*library, "ncclGetVersion", nccl.get_version)();
  if (!found) return pass(found, "libnccl.so.2");
  int v = 0;  // 10000 * major + 100 * minor + patch, since NCCL 2.9
  if (const int result = nccl.get_version(&v); result != 0)
    return fail(Code::missing, "ncclGetVersion: NCCL error {}", result);
  return Driver<Nccl>{nccl, fmt::format("{}.{}.{}", v / 10000, v % 10000 / 100, v % 100),
                      std::move(*library)};
}

}  // namespace crosstie
